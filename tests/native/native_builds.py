"""Builds the native core aside from the installed one: with a quirk changed, or with sanitizers."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from pathlib import Path

from actor.env import native

SOURCES = Path(native.__file__).parent
BINDING = {
    "module.cpp",
    "arguments.cpp",
    "console_object.cpp",
    "inspection.cpp",
}
BUILD_VARIABLE = "WARPZONE_NATIVE_BUILD"
"""Where a process finds the build that it shall use instead of the installed one."""
_BUILD_LIMIT_S = 600


def compiler() -> str:
    return os.environ.get("CXX", "c++")


def build_extension(folder: Path, defines: dict[str, int]) -> Path:
    """An extension module with these macros, quickly compiled rather than quick."""
    out = folder / "_console.so"
    includes = sysconfig.get_paths()["include"]
    flags = ["-O1", "-shared", "-fPIC", f"-I{includes}"]
    flags += [f"-D{name}={value}" for name, value in defines.items()]
    _compile(flags, sorted(SOURCES.glob("*.cpp")), out)
    return out


def build_program(folder: Path, main: Path, flags: list[str]) -> Path:
    """A program of its own with the core, without Python."""
    out = folder / main.stem
    core = [path for path in sorted(SOURCES.glob("*.cpp")) if path.name not in BINDING]
    _compile([*flags, f"-I{SOURCES}"], [main, *core], out)
    return out


def _compile(flags: list[str], sources: list[Path], out: Path) -> None:
    command = [compiler(), "-std=c++17", *flags, *map(str, sources), "-o", str(out)]
    subprocess.run(command, check=True, timeout=_BUILD_LIMIT_S)
