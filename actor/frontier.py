"""Moments of an actor's own episodes from which it may begin again, to practise what lies ahead.

One moment is kept for each stretch of ground of each stage, the newest that came by. Where a start
is drawn from is a choice: shortly before places where episodes were lost lately, or from the far
half of the stretches, where the agent has been least.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal

from actor.env.episode import EnvSnapshot

FrontierStarts = Literal["losses", "far"]
STRETCH_PIXELS: Final = 64
MAX_AGE_EPISODES: Final = 200
"""A moment that nobody has reached again for so long is forgotten: it may have been luck."""
FAR_SHARE: Final = 0.75
RECENT_LOSSES: Final = 64
LEAD_STRETCHES: Final = 6
"""How far before a loss an episode may begin: two or three seconds of running."""


def stretch_of(ground_pixels: int) -> int:
    return ground_pixels // STRETCH_PIXELS


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    snapshot: EnvSnapshot
    prev_action: int
    kept_at_episode: int


@dataclass(slots=True)
class StageMemory:
    moments: dict[int, Moment] = field(default_factory=dict)
    """By stretch."""
    losses: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT_LOSSES))
    """Stretches in which episodes ended without the flag, newest last."""

    def forget_before(self, oldest_episode: int) -> None:
        for stretch in [
            s for s, one in self.moments.items() if one.kept_at_episode < oldest_episode
        ]:
            del self.moments[stretch]


class Frontier:
    """One for all environments of an actor; bounded by the ground that a stage has."""

    def __init__(self, share: float, seed: int, kind: FrontierStarts = "losses") -> None:
        """`share` of the episodes begin at a moment, as soon as there are any."""
        self._share = share
        self._kind = kind
        self._rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._stages: dict[str, StageMemory] = {}
        self._episodes = 0

    def wants(self, ground_pixels: int, newest_stretch: int) -> bool:
        """Whether an episode has come to a stretch beyond the one of its newest moment."""
        return self._share > 0 and stretch_of(ground_pixels) > newest_stretch

    def keep(self, stage: str, stretch: int, snapshot: EnvSnapshot, prev_action: int) -> None:
        moment = Moment(snapshot, prev_action, self._episodes)
        self._memory(stage).moments[stretch] = moment

    def note_loss(self, stage: str, ground_pixels: int) -> None:
        """An episode ended here without the flag."""
        self._memory(stage).losses.append(stretch_of(ground_pixels))

    def draw(self, stage: str) -> Moment | None:
        """Where the next episode of a stage begins; None for its true start."""
        self._episodes += 1
        memory = self._memory(stage)
        memory.forget_before(self._episodes - MAX_AGE_EPISODES)
        if not memory.moments or self._rng.random() >= self._share:
            return None
        pool = self._before_a_loss(memory) if self._kind == "losses" else self._far_out(memory)
        return memory.moments[self._rng.choice(pool)] if pool else None

    def _memory(self, stage: str) -> StageMemory:
        return self._stages.setdefault(stage, StageMemory())

    def _before_a_loss(self, memory: StageMemory) -> list[int]:
        """The stretches with a moment that lead to a place drawn from the newest losses."""
        if not memory.losses:
            return []
        lost = self._rng.choice(memory.losses)
        return [s for s in range(lost - LEAD_STRETCHES, lost + 1) if s in memory.moments]

    def _far_out(self, memory: StageMemory) -> list[int]:
        stretches = sorted(memory.moments)
        is_far = self._rng.random() < FAR_SHARE
        return stretches[len(stretches) // 2 :] if is_far else stretches
