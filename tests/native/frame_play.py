"""Pieces of play for the frame lockstep: what they are, how a million frames are shared out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from actor.env import ram as memory
from actor.env.actions import action_bytes
from actor.env.native_core import NativeCore
from actor.env.nes_core import NesPyCore
from actor.env.repetition import button_script
from actor.env.stage_game import StageGame
from common.game import STAGES
from common.traces import Trace
from tests.native.sticky_play import sticky
from tests.native.twin_core import CoresDiffer, TwinCore

# nes_py's step is 1.5 dots longer than a picture of 89,341.5 dots: after this many frames the
# border between two steps has been at every dot of the picture, also inside the interrupt.
DRIFT_FRAMES: Final = 60_000
_DRIFT_STAGES: Final = ("1-1", "8-1")
_DRIFT_SHARE_LIMIT: Final = 4
_UNBROKEN_SHARE: Final = 0.8
_WORTH_SPLITTING_FRAMES: Final = 5_000
_LONGEST_HOLD_FRAMES: Final = 24
_RELOAD_AFTER_FRAMES: Final = (300, 1_500)
_FRAMES_PER_POKE: Final = 250
_START_FRAMES: Final = 250
_AFTER_CLEAR_FRAMES: Final = 750

_SIZE: Final = 0x0754
_STAR_TIMER: Final = 0x079F
_ENTER_PIPE: Final = 3
_CLIMB_VINE: Final = 1
# What random play rarely reaches: invulnerability, size, fire, bonus rooms, clouds, water.
_POKES: Final[tuple[tuple[tuple[int, int], ...], ...]] = (
    ((_STAR_TIMER, 0x23),),
    ((_STAR_TIMER, 0x23), (memory.POWER, 2), (_SIZE, 0)),
    ((memory.POWER, 1), (_SIZE, 0)),
    ((memory.POWER, 2), (_SIZE, 0)),
    ((memory.POWER, 0), (_SIZE, 1)),
)
_RARE_POKES: Final = (
    ((memory.PLAYER_STATE, _ENTER_PIPE),),
    ((memory.PLAYER_STATE, _CLIMB_VINE),),
)
_RARE_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTask:
    """A piece of play, in emulator frames with those of the start screen.

    Unbroken play goes on through deaths with new lives; other play returns to the first frame now
    and then. With a script, button bytes of agent steps, play begins with that.
    """

    stage: str
    seed: int
    frames: int
    policy: Literal["right", "uniform"] = "right"
    is_unbroken: bool = True
    script: tuple[int, ...] = ()
    frame_skip: int = 4

    @property
    def name(self) -> str:
        kind = "script" if self.script else "unbroken" if self.is_unbroken else "reloading"
        return f"stage {self.stage}, seed {self.seed}, {self.policy}, {kind}"

    @property
    def amount(self) -> int:
        return self.frames


def share_out(frames: int) -> list[FrameTask]:
    """All stages alike; of many frames the longer part unbroken, a few very long."""
    tasks = []
    if frames >= _DRIFT_SHARE_LIMIT * DRIFT_FRAMES * len(_DRIFT_STAGES):
        for seed, stage in enumerate(_DRIFT_STAGES, start=1_000):
            tasks.append(FrameTask(stage=stage, seed=seed, frames=DRIFT_FRAMES))
            frames -= DRIFT_FRAMES
    for index, stage in enumerate(STAGES):
        share = frames // len(STAGES) + (index < frames % len(STAGES))
        if share >= _WORTH_SPLITTING_FRAMES:
            unbroken = int(share * _UNBROKEN_SHARE)
            tasks.append(FrameTask(stage=stage, seed=index, frames=unbroken))
            share -= unbroken
        policy: Literal["right", "uniform"] = "uniform" if index % 3 == 2 else "right"
        if share:
            tasks.append(
                FrameTask(
                    stage=stage, seed=100 + index, frames=share, policy=policy, is_unbroken=False
                )
            )
    return tasks


def clear_tasks(clears: Sequence[Trace]) -> list[FrameTask]:
    """Each clear from the first frame to the flag, and then on into the next stage."""
    return [
        FrameTask(
            stage=clear.stage,
            seed=200 + index,
            frames=_START_FRAMES + len(clear.actions) * clear.frame_skip + _AFTER_CLEAR_FRAMES,
            script=button_script(clear),
            frame_skip=clear.frame_skip,
        )
        for index, clear in enumerate(clears)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    task: FrameTask
    frames: int
    """Compared; a script with long cut-scenes has more than its task says."""
    difference: str
    """Empty when the cores agreed."""

    def line(self) -> str:
        return self.difference or f"{self.task.name}, {self.frames} frames: equal"


def check(task: FrameTask) -> Outcome:
    """Play a task on both cores up to the first difference."""
    twin = TwinCore(NesPyCore(), NativeCore())
    difference = ""
    try:
        play(task, twin)
    except CoresDiffer as found:
        difference = f"{task.name}, {found}"
    finally:
        twin.close()
    return Outcome(task=task, frames=twin.frames, difference=difference)


def play(task: FrameTask, twin: TwinCore) -> None:
    game = StageGame(twin, task.stage)
    for held in task.script:
        game.play(held, task.frame_skip)
    generator = random.Random(task.seed)
    every = action_bytes("extended")
    favoured = action_bytes("right_only")[1:] if task.policy == "right" else ()
    buttons = sticky(generator, every, favoured=favoured, longest_hold=_LONGEST_HOLD_FRAMES)
    reload_at = twin.frames + generator.randint(*_RELOAD_AFTER_FRAMES)
    while twin.frames < task.frames:
        if task.is_unbroken:
            _give_lives(twin)
        elif twin.frames >= reload_at:
            twin.load_state()
            reload_at = twin.frames + generator.randint(*_RELOAD_AFTER_FRAMES)
        if generator.randrange(_FRAMES_PER_POKE) == 0:
            _poke(twin, generator)
        twin.step(next(buttons))


def _give_lives(twin: TwinCore) -> None:
    if twin.ram[memory.LIVES] == 0:
        twin.ram[memory.LIVES] = 2


def _poke(twin: TwinCore, generator: random.Random) -> None:
    pokes = _RARE_POKES if generator.random() < _RARE_SHARE else _POKES
    for address, value in generator.choice(pokes):
        twin.ram[address] = value
