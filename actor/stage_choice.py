"""Which stage an episode plays, drawn by the shares that come with the weights."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence


class StageChoice:
    """One for all environments of an actor."""

    def __init__(self, stages: Sequence[str], seed: int) -> None:
        self._stages = list(stages)
        self._shares = [1.0] * len(self._stages)
        self._rng = random.Random(seed)  # noqa: S311 - repeatable, not secret

    def set_shares(self, shares: Mapping[str, object]) -> None:
        """A stage without a share is not played; shares that say nothing change nothing."""
        wanted = [_share(shares.get(stage)) for stage in self._stages]
        if sum(wanted) > 0:
            self._shares = wanted

    def draw(self) -> str:
        if len(self._stages) == 1:
            return self._stages[0]
        return self._rng.choices(self._stages, self._shares)[0]


def _share(value: object) -> float:
    return max(float(value), 0.0) if isinstance(value, int | float) else 0.0
