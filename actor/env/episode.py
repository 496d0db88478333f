"""What `MarioEnv` remembers of the episode that it plays: its limits, and how to repeat it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from actor.env.interface import Info
from actor.env.new_ground import NewGround
from actor.env.ram import Ram
from actor.env.stage_game import GameSnapshot
from common.config import EnvSettings
from common.traces import Trace, ram_checksum

FRAMES_PER_SECOND: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EnvSnapshot:
    """A moment of an episode from which it can be played on: console, trackers, frames seen."""

    game: GameSnapshot
    episode: EpisodeState
    observation: NDArray[np.uint8]


@runtime_checkable
class RestorableEnv(Protocol):
    """An environment that can go back to a moment of an episode."""

    def snapshot(self) -> EnvSnapshot: ...

    def restore(self, moment: EnvSnapshot) -> Info: ...


@dataclass(slots=True, kw_only=True)
class EpisodeState:
    """From `reset` to the end."""

    seed: int
    """With which randomness was seeded last; later episodes go on from there."""
    noop_frames: int
    ground: NewGround
    frames: int = 0
    newest_ground_frame: int = 0
    """When there was new ground for the last time."""
    actions: list[int] = field(default_factory=list)
    """As they were played, after sticking."""

    def copy(self) -> EpisodeState:
        return replace(self, ground=self.ground.copy(), actions=list(self.actions))

    def note(self, action: int, frames: int, ram: Ram) -> None:
        self.actions.append(action)
        self.frames += frames
        if self.ground.note(ram):
            self.newest_ground_frame = self.frames

    def is_out_of_time(self, settings: EnvSettings) -> bool:
        """Whether the episode has lasted too long, or too long without new ground."""
        if self.frames >= settings.max_episode_frames:
            return True
        idle_s = (self.frames - self.newest_ground_frame) / FRAMES_PER_SECOND
        return 0 < settings.stagnation_seconds <= idle_s

    def trace(self, stage: str, settings: EnvSettings, ram: memoryview[int]) -> Trace:
        """The episode so far, for whoever wants to see it again."""
        return Trace(
            stage=stage,
            seed=self.seed,
            noop_frames=self.noop_frames,
            frame_skip=settings.frame_skip,
            action_set=settings.actions,
            actions=tuple(self.actions),
            final_ram_sha256=ram_checksum(ram),
        )
