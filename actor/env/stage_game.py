"""One stage of Super Mario Bros., frame by frame: reward, end, facts and skipped cut-scenes.

Equal to `SuperMarioBrosEnv(target=(world, stage))` of gym-super-mario-bros 7.4, held by
tests/integration/test_mario_lockstep.py, but for its unbounded loops: here each has a limit. Its
death and end-of-world skips cannot happen when a stage ends at death and at the flag.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from actor.env import ram as memory
from actor.env.core import EmulatorCore, PortableCore
from actor.env.interface import Info
from actor.env.ram import Ram
from actor.env.reward import Progress, frame_reward
from common.errors import EnvironmentFailed
from common.game import BUTTON_BITS, parse_stage

_NO_BUTTON: Final = 0
_START: Final = BUTTON_BITS["start"]
# The two loops of a start take at most 17 and 108 rounds (measured over all stages), so ten times
# that is a hang. A scene may last as long as 100 seconds of the game.
START_LIMIT_ROUNDS: Final = 1_000
BUSY_LIMIT_FRAMES: Final = 6_000
_TIMER_OFF: Final = 0xFF
# In these worlds the second stage begins with a short area of its own, Mario walking into a pipe.
_WORLDS_WITH_INTRO_AREA: Final = frozenset({1, 2, 4, 7})


@dataclass(frozen=True, slots=True)
class PlayResult:
    """What happened while one button byte was held; `frames` is less than asked after an end."""

    raw_reward: float
    is_over: bool
    frames: int
    info: Info

    @property
    def is_out_of_time(self) -> bool:
        """The game's clock ran out, which ends a stage like a death."""
        return self.is_over and self.info["time"] == 0 and not self.info["flag_get"]


def target_area(world: int, stage: int) -> int:
    """The area number from 1 at which a stage begins."""
    has_intro_before = world in _WORLDS_WITH_INTRO_AREA and stage > 1
    return stage + 1 if has_intro_before else stage


def read_info(ram: Ram) -> Info:
    return {
        "coins": memory.coins(ram),
        "flag_get": memory.has_flag(ram),
        "life": memory.lives(ram),
        "score": memory.score(ram),
        "stage": memory.stage(ram),
        "status": memory.status(ram),
        "time": memory.time_left(ram),
        "world": memory.world(ram),
        "x_pos": memory.x_position(ram),
        "y_pos": memory.y_position(ram),
    }


def is_in_stage(info: Info, stage: str) -> bool:
    """Whether Mario is still where the episode began; a warp zone leads elsewhere."""
    return (info["world"], info["stage"]) == parse_stage(stage)


def bounded(loop: str, limit: int, ram: Ram) -> Iterator[None]:
    """Turns of a loop that waits for the game; one too many is a failure that names the loop."""
    for _ in range(limit):
        yield
    raise EnvironmentFailed(
        f"{loop} did not end within {limit} turns "
        f"(world {memory.world(ram)}-{memory.stage(ram)}, time {memory.time_left(ram)}, "
        f"player state {int(ram[memory.PLAYER_STATE])}, mode {int(ram[memory.GAME_MODE])})"
    )


@dataclass(frozen=True, slots=True)
class GameSnapshot:
    """A moment of a stage, with what the reward of the next frame is measured against."""

    stage: str
    console: bytes
    progress: Progress


class StageGame:
    """Plays one stage on a core that it does not own; `reset` returns to its first frame."""

    def __init__(self, core: EmulatorCore, stage: str) -> None:
        self._core = core
        self._ram = core.ram
        self._progress = Progress(0, 0)
        self.select(stage)

    @property
    def stage(self) -> str:
        return self._stage

    def select(self, stage: str) -> None:
        """Play through the start screen into a stage and keep its first frame in the save slot."""
        world, number = parse_stage(stage)
        self._core.power_on()
        self._pass_start_screen(world, number)
        self._wait_for_first_tick()
        self._core.save_state()
        self._stage = stage
        self.reset()

    def reset(self) -> Info:
        self._core.load_state()
        self._progress = Progress.of(self._ram)
        return read_info(self._ram)

    def snapshot(self) -> GameSnapshot:
        if not isinstance(self._core, PortableCore):
            raise EnvironmentFailed("this core has no snapshots; use --core native")
        return GameSnapshot(self._stage, self._core.snapshot(), self._progress)

    def restore(self, moment: GameSnapshot) -> None:
        if not isinstance(self._core, PortableCore):
            raise EnvironmentFailed("this core has no snapshots; use --core native")
        if moment.stage != self._stage:
            self.select(moment.stage)
        self._core.restore(moment.console)
        self._progress = moment.progress

    def play(self, buttons: int, frames: int) -> PlayResult:
        """Hold the buttons for some frames, or until the stage ends."""
        raw_reward = 0.0
        snapshot = b""
        is_over = False
        played = 0
        while played < frames and not is_over:
            played += 1
            # Only the last frame is seen, unless the stage ends before it.
            self._core.step(buttons, look=played == frames)
            # Facts are those of the frame just played, before any scene is skipped.
            snapshot = bytes(self._ram)
            reward, is_over = self._judge(snapshot)
            raw_reward += reward
            if not is_over:
                self._skip_scenes(snapshot)
        return PlayResult(raw_reward, is_over, played, read_info(snapshot))

    def _judge(self, ram: Ram) -> tuple[float, bool]:
        after = Progress.of(ram)
        is_lost = memory.is_dying(ram) or memory.is_dead(ram)
        reward = frame_reward(self._progress, after, is_dying_or_dead=is_lost)
        self._progress = after
        return reward, is_lost or memory.has_flag(ram)

    def _skip_scenes(self, ram: Ram) -> None:
        if 1 < int(ram[memory.CHANGE_AREA_TIMER]) < _TIMER_OFF:
            self._ram[memory.CHANGE_AREA_TIMER] = 1
        if memory.is_busy(ram) or memory.is_world_over(ram):
            self._skip_occupied_states()

    def _skip_occupied_states(self) -> None:
        for _ in bounded("skip_occupied_states", BUSY_LIMIT_FRAMES, self._ram):
            if not (memory.is_busy(self._ram) or memory.is_world_over(self._ram)):
                return
            self._ram[memory.PRELEVEL_TIMER] = 0
            self._core.step(_NO_BUTTON, look=False)

    def _pass_start_screen(self, world: int, stage: int) -> None:
        """Press start until the clock shows a time, asking for our stage each time."""
        self._press_and_release_start()
        for _ in bounded("pass_start_screen", START_LIMIT_ROUNDS, self._ram):
            if memory.time_left(self._ram) != 0:
                return
            self._core.step(_START, look=False)
            self._ram[memory.WORLD] = world - 1
            self._ram[memory.STAGE] = stage - 1
            self._ram[memory.AREA] = target_area(world, stage) - 1
            self._core.step(_NO_BUTTON, look=False)
            self._ram[memory.PRELEVEL_TIMER] = 0

    def _wait_for_first_tick(self) -> None:
        time_before = memory.time_left(self._ram)
        for _ in bounded("wait_for_first_tick", START_LIMIT_ROUNDS, self._ram):
            time_now = memory.time_left(self._ram)
            if time_now < time_before:
                return
            time_before = time_now
            self._press_and_release_start()

    def _press_and_release_start(self) -> None:
        self._core.step(_START, look=False)
        self._core.step(_NO_BUTTON, look=False)
