"""Plays nes_py beside a given build of the native core and tells the first difference.

Runs in a process of its own, since a process can hold only one build: `python -m
tests.native.mutant_play PATH`. Exit code 0: no difference, 1: one was found.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path

from actor.env.stage_game import StageGame
from common.errors import EnvironmentFailed

_MODULE = "actor.env.native._console"
_STAGES = ("1-1", "2-2")
_FRAMES = 600
_BUTTONS = (0x80, 0x81, 0x82, 0x83, 0x40, 0x00, 0x01)


def install(library: Path) -> None:
    """Let this build stand for the installed one."""
    spec = importlib.util.spec_from_file_location(_MODULE, library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[_MODULE] = module


def difference() -> str:
    """The real game: its random numbers show a single cycle within a few frames."""
    # Not before `install`.
    from actor.env.native_core import NativeCore  # noqa: PLC0415
    from actor.env.nes_core import NesPyCore  # noqa: PLC0415

    theirs, ours = NesPyCore(), NativeCore()
    for stage in _STAGES:
        try:
            StageGame(theirs, stage)
            StageGame(ours, stage)
        except EnvironmentFailed as exc:
            return f"{stage} does not start: {exc}"
        dice = random.Random(stage)
        for frame in range(_FRAMES):
            buttons = dice.choice(_BUTTONS)
            theirs.step(buttons, look=False)
            ours.step(buttons, look=False)
            if bytes(ours.ram) != bytes(theirs.ram):
                return f"{stage}, frame {frame}: RAM differs"
    return ""


if __name__ == "__main__":
    install(Path(sys.argv[1]))
    found = difference()
    print(found or "no difference")  # noqa: T201 - the test shows it
    sys.exit(1 if found else 0)
