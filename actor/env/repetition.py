"""Plays a trace again on a clean emulator, and says whether it is what it claims to be."""

from __future__ import annotations

from dataclasses import dataclass

from actor.env.actions import action_bytes
from actor.env.core import EmulatorCore
from actor.env.stage_game import StageGame, is_in_stage
from common.errors import TraceInvalid
from common.traces import Trace, ram_checksum


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """How a trace ended this time."""

    has_flag: bool
    ram_sha256: str
    frames: int


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
        has_flag = bool(played.info["flag_get"]) and is_in_stage(played.info, trace.stage)
        if played.is_over and index < len(script):
            raise TraceInvalid(
                f"play on {trace.stage} ended with action {index} of {len(script)}: "
                "the core or the game is not the one that was recorded"
            )
    return Repeated(has_flag=has_flag, ram_sha256=ram_checksum(core.ram), frames=frames)


def what_is_wrong(trace: Trace, core: EmulatorCore) -> str:
    """Empty for a trace that reaches the flag with the memory that it promises."""
    try:
        repeated = repeat(trace, core)
    except TraceInvalid as error:
        return str(error)
    if not repeated.has_flag:
        return f"play on {trace.stage} does not reach the flag"
    if repeated.ram_sha256 != trace.final_ram_sha256:
        return f"play on {trace.stage} reaches the flag with another memory than recorded"
    return ""
