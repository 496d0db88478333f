"""Builds the native core where there is a C++ compiler; all else is in pyproject.toml."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("actor/env/native")
# One file for Python 3.11 and all later ones; free-threaded Pythons have no such agreement.
IS_STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
# Without debug symbols, which would make the build a third longer.
UNIX_FLAGS = ["-std=c++17", "-O3", "-g0", "-fvisibility=hidden"]
MSVC_FLAGS = ["/std:c++17", "/O2", "/EHsc"]


def remove_builds() -> None:
    for outdated in (*NATIVE.glob("_console*.so"), *NATIVE.glob("_console*.pyd")):
        outdated.unlink()


class BuildNative(build_ext):
    """Chooses the flags by compiler, and leaves no older build behind where this one fails."""

    def run(self) -> None:
        self._is_in_place = bool(self.inplace)
        super().run()

    def build_extension(self, ext: Extension) -> None:
        is_msvc = self.compiler.compiler_type == "msvc"
        ext.extra_compile_args = MSVC_FLAGS if is_msvc else UNIX_FLAGS
        try:
            super().build_extension(ext)
        except Exception:
            if self._is_in_place:
                remove_builds()
            # What an earlier build left beside it would go into the wheel.
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
            raise


setup(
    ext_modules=[
        Extension(
            "actor.env.native._console",
            sources=sorted(str(path) for path in NATIVE.glob("*.cpp")),
            depends=sorted(str(path) for path in NATIVE.glob("*.hpp")),
            language="c++",
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if IS_STABLE else [],
            py_limited_api=IS_STABLE,
            # Without it the emulator is nes_py: slower, but the same game.
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildNative},
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if IS_STABLE else {},
)
