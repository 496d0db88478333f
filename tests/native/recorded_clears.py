"""The clears in `clears/`, one trace per stage, and how a trace is repeated on a core."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from actor.env.actions import action_bytes
from actor.env.core import EmulatorCore
from actor.env.stage_game import StageGame
from common.errors import TraceInvalid
from common.traces import Trace, ram_checksum, read_trace

FOLDER: Final = Path(__file__).parent / "clears"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """How a trace ended this time."""

    has_flag: bool
    ram_sha256: str
    frames: int


def clear_path(stage: str) -> Path:
    return FOLDER / f"{stage}.json"


def read_clears() -> tuple[Trace, ...]:
    return tuple(read_trace(path) for path in sorted(FOLDER.glob("*.json")))


def button_script(trace: Trace) -> tuple[int, ...]:
    """The button byte of every agent step."""
    buttons = action_bytes(trace.action_set)
    return tuple(buttons[action] for action in trace.actions)


def repeat(trace: Trace, core: EmulatorCore) -> Repeated:
    """Play a trace from the first frame of its stage; an end before its last action is an error."""
    game = StageGame(core, trace.stage)
    if trace.noop_frames:
        game.play(0, trace.noop_frames)
    frames = 0
    has_flag = False
    script = button_script(trace)
    for index, buttons in enumerate(script, start=1):
        played = game.play(buttons, trace.frame_skip)
        frames += played.frames
        has_flag = bool(played.info["flag_get"])
        if played.is_over and index < len(script):
            raise TraceInvalid(
                f"play on {trace.stage} ended with action {index} of {len(script)}: "
                "the core or the game is not the one that was recorded"
            )
    return Repeated(has_flag=has_flag, ram_sha256=ram_checksum(core.ram), frames=frames)
