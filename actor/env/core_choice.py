"""Which emulator core plays, and how it is built. A core is imported only when it is chosen."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, assert_never

from actor.env.core import EmulatorCore
from common.config import CoreName, EnvSettings
from common.errors import CoreUnavailable

log = logging.getLogger(__name__)

PlayedCore = Literal["nes_py", "native", "fceumm"]


@dataclass(frozen=True, slots=True)
class CoreChoice:
    """The core that plays, and why it is not the native one if `auto` would have liked that."""

    name: PlayedCore
    fallback_reason: str = ""


def why_no_native_core() -> str:
    """Empty where the native core can be used."""
    from actor.env.native_core import load_console  # noqa: PLC0415 - see the first line

    try:
        load_console()
    except CoreUnavailable as error:
        return str(error)
    return ""


def choose_core(name: CoreName) -> CoreChoice:
    """`auto` becomes the native core where it was built, otherwise nes_py."""
    if name != "auto":
        return CoreChoice(name)
    reason = why_no_native_core()
    return CoreChoice("nes_py", reason) if reason else CoreChoice("native")


def settle_core(settings: EnvSettings) -> EnvSettings:
    """Settings that name the core which really plays; a fallback is logged."""
    if settings.game != "mario":
        return settings
    choice = choose_core(settings.core)
    if choice.fallback_reason:
        _tell_fallback(choice.fallback_reason)
    return replace(settings, core=choice.name)


@cache
def _tell_fallback(reason: str) -> None:
    """Once per process, and readable where nobody has configured logging."""
    log.warning("playing on nes_py: %s", reason)


def core_class(name: CoreName) -> Callable[[], EmulatorCore]:
    """The class of a core, imported and with its library loaded."""
    played = choose_core(name).name
    if played == "nes_py":
        from actor.env.nes_core import NesPyCore, load_library  # noqa: PLC0415

        load_library()
        return NesPyCore
    if played == "native":
        from actor.env.native_core import NativeCore, load_console  # noqa: PLC0415

        load_console()
        return NativeCore
    if played == "fceumm":
        from actor.env.fceumm_core import FceummCore  # noqa: PLC0415
        from actor.env.retro_library import load_retro  # noqa: PLC0415

        load_retro()
        return FceummCore
    assert_never(played)


def make_core(name: CoreName) -> EmulatorCore:
    return core_class(name)()
