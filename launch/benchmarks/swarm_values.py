"""What the benchmark `swarm` is about: who plays how fast, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from common.config import Settings
from launch.benchmarks.replay_plan import unbalanced_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew:
    """How many actors there are, and what they send."""

    actors: int
    has_keys: bool = False
    capacity: int = 20_000
    frame_side: int = 84

    @property
    def name(self) -> str:
        return f"{self.actors:,} actors{', keys' if self.has_keys else ''}"

    @property
    def settings(self) -> Settings:
        """Nobody learns, so nobody waits for a learner."""
        return unbalanced_settings(self.actors, self.capacity, self.frame_side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast each actor plays, and for how long."""

    agent_steps_per_s: float
    """0: as fast as its window allows."""
    seconds: float
    warm_s: float
    """Before anything is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What all lines saw while they played at one pace."""

    agent_steps_per_s: float
    latencies_s: Sequence[float]
    """From submitting a block to its acknowledgement."""
    generator_cores: float
    server_cores: float
    server_peak_bytes: int

    @property
    def late_s(self) -> float:
        """99 % of the blocks were answered sooner."""
        ordered = sorted(self.latencies_s)
        return ordered[min(int(0.99 * len(ordered)), len(ordered) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Of blocks, once nothing is on its way any more."""

    wrong: float
    """0: every block was acknowledged in the end, and this life of the server holds it once."""
    sent_again: int
    """Since the last account: lines that were given up, or a server that was restarted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """Seconds of a restart after which every actor had something to say."""

    first_welcome_s: float
    """From the start of the server's process."""
    all_welcome_s: float
    """From the first welcome to the last."""
