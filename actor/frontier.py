"""Moments of an actor's own episodes from which it may begin again, to practise what lies ahead.

One moment is kept for each stretch of ground of each stage, the newest that came by. A start is
drawn from the far half of the stretches most often: there the agent has been least.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from actor.env.episode import EnvSnapshot

STRETCH_PIXELS: Final = 64
MAX_AGE_EPISODES: Final = 200
"""A moment that nobody has reached again for so long is forgotten: it may have been luck."""
FAR_SHARE: Final = 0.75


def stretch_of(ground_pixels: int) -> int:
    return ground_pixels // STRETCH_PIXELS


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    snapshot: EnvSnapshot
    prev_action: int
    kept_at_episode: int


class Frontier:
    """One for all environments of an actor; bounded by the ground that a stage has."""

    def __init__(self, share: float, seed: int) -> None:
        """`share` of the episodes begin at a moment, as soon as there are any."""
        self._share = share
        self._rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._moments: dict[str, dict[int, Moment]] = {}
        self._episodes = 0

    def wants(self, ground_pixels: int, newest_stretch: int) -> bool:
        """Whether an episode has come to a stretch beyond the one of its newest moment."""
        return self._share > 0 and stretch_of(ground_pixels) > newest_stretch

    def keep(self, stage: str, stretch: int, snapshot: EnvSnapshot, prev_action: int) -> None:
        moment = Moment(snapshot, prev_action, self._episodes)
        self._moments.setdefault(stage, {})[stretch] = moment

    def draw(self, stage: str) -> Moment | None:
        """Where the next episode of a stage begins; None for its true start."""
        self._episodes += 1
        moments = self._moments.get(stage, {})
        self._forget_old(moments)
        if not moments or self._rng.random() >= self._share:
            return None
        stretches = sorted(moments)
        far = stretches[len(stretches) // 2 :]
        pool = far if self._rng.random() < FAR_SHARE else stretches
        return moments[self._rng.choice(pool)]

    def _forget_old(self, moments: dict[int, Moment]) -> None:
        oldest = self._episodes - MAX_AGE_EPISODES
        for stretch in [key for key, one in moments.items() if one.kept_at_episode < oldest]:
            del moments[stretch]
