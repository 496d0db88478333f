"""What ranks agree on before each batch: pure functions of what each of them says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass

from torch import Tensor

from common.errors import RanksLost


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What one rank says. Only numbers that a float64 holds exactly."""

    has_batch: bool
    stops: bool
    """It wants to end: it was told to, or a budget is used up."""
    updates: int
    least_priority: float = 0.0
    """Of its part of the batch; what its importance weights are relative to."""
    learning_rate: float = 0.0
    """Of this update; that of rank 0 counts, and so does its beta."""
    beta: float = 0.0

    def to_numbers(self) -> list[float]:
        return [float(value) for value in astuple(self)]

    @classmethod
    def from_numbers(cls, numbers: Sequence[float]) -> Word:
        has_batch, stops, updates, least_priority, learning_rate, beta = numbers
        return cls(
            has_batch=bool(has_batch),
            stops=bool(stops),
            updates=int(updates),
            least_priority=least_priority,
            learning_rate=learning_rate,
            beta=beta,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What all ranks do next; the same on all of them, because all heard the same."""

    trains: bool
    """False: some rank has no batch yet, and the others keep theirs."""
    ends: bool
    least_priority: float
    """Of the whole batch."""
    learning_rate: float
    beta: float


def agree(words: Sequence[Word]) -> Agreement:
    """Raises `RanksLost` when the ranks are not at the same update: their networks would differ."""
    updates = [word.updates for word in words]
    if len(set(updates)) > 1:
        raise RanksLost(f"the learner ranks are at different updates: {updates}")
    ends = any(word.stops for word in words)
    return Agreement(
        trains=not ends and all(word.has_batch for word in words),
        ends=ends,
        least_priority=min(word.least_priority for word in words),
        learning_rate=words[0].learning_rate,
        beta=words[0].beta,
    )


def rescale(weights: Tensor, local: float, global_: float, beta: float) -> Tensor:
    """Importance weights (`local` / p)^beta of a part as those of the whole: (`global_` / p)^beta.

    `local` and `global_` are the least priorities of the part and of the whole batch.
    """
    if local == global_:
        return weights
    return weights.mul(math.pow(global_ / local, beta))
