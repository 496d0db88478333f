"""Which stage an episode plays, drawn by the shares that come with the weights."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from common.config import Settings
from common.game import parse_stage_weights


def first_shares(settings: Settings) -> dict[str, float]:
    """As the learner's curriculum begins; what is played until its own shares arrive."""
    chosen, stages = settings.curriculum, settings.env.stage_names
    weights = parse_stage_weights(chosen.stage_weights) if chosen.curriculum == "manual" else {}
    unlocked = stages[:1] if chosen.unlock_clear_rate else stages
    return {stage: weights.get(stage, 1.0) for stage in unlocked}


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
