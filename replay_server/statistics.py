"""What the buffer tells about itself, gathered without slowing it down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from common.phases import PhaseTimer
from replay_server.sum_tree import SumTree

Clock = Callable[[], float]
"""Seconds from any fixed point in time, never going back."""

_DECAY = 0.99
"""Weight of the past in running means: about the last hundred batches count."""
_MAX_SAMPLED_LEAVES = 16_384
_PHASE_OF = {"tree": "sample", "window": "sample"}
"""Steps of a draw that are one phase of the process."""
DEFAULT_READING_INTERVAL_S = 10.0
Reading = TypeVar("Reading")


class RunningMean:
    """Exponential mean that begins at the first value; None before it."""

    def __init__(self) -> None:
        self.value: float | None = None

    def add(self, value: float) -> None:
        past = value if self.value is None else self.value
        self.value = _DECAY * past + (1.0 - _DECAY) * value


class PhaseMeans:
    """Running mean of the time that each named phase takes.

    On CUDA this is the time to enqueue the work: phases are not synchronised to be measured.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.shares = PhaseTimer()
        """The same phases, as shares of the process' time."""
        self._means: dict[str, RunningMean] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started_s = self._clock()
        with self.shares.phase(_PHASE_OF.get(name, name)):
            yield
        # Not in a `finally`: the time of a phase that raised says nothing about its cost.
        duration_ms = (self._clock() - started_s) * 1e3
        self._means.setdefault(name, RunningMean()).add(duration_ms)

    def means_ms(self) -> dict[str, float]:
        return {name: mean.value for name, mean in self._means.items() if mean.value is not None}


class UniqueRatio:
    """How many different items a batch holds, as a share of its size; kept on the device."""

    def __init__(self, *, device: torch.device | str = "cpu") -> None:
        self._last = torch.zeros((), dtype=torch.float64, device=device)
        self._mean = torch.zeros((), dtype=torch.float64, device=device)
        self._num_batches = 0

    def add(self, slots: Tensor) -> None:
        """`slots` [B] non-decreasing, as stratified sampling gives them."""
        num_unique = 1 + slots.diff().count_nonzero()
        # The batch may have left the device already.
        self._last = num_unique.to(self._mean) / len(slots)
        past = self._mean if self._num_batches else self._last
        self._mean = _DECAY * past + (1.0 - _DECAY) * self._last
        self._num_batches += 1

    def read(self) -> tuple[float, float]:
        """Last value and running mean, 0 before the first batch. Waits for the device."""
        return float(self._last), float(self._mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritySummary:
    """Distribution of the priorities that can be drawn, after the exponent alpha."""

    mean: float = 0.0
    p50: float = 0.0
    p90: float = 0.0
    p99: float = 0.0


def summarise_priorities(tree: SumTree) -> PrioritySummary:
    """From at most 16,384 leaves at equal distances. Waits for the device."""
    stride = -(-tree.num_leaves // _MAX_SAMPLED_LEAVES)
    leaves = tree.leaves_every(stride)
    priorities = leaves[leaves > 0]
    if len(priorities) == 0:
        return PrioritySummary()
    levels = torch.tensor([0.5, 0.9, 0.99], dtype=torch.float64, device=priorities.device)
    p50, p90, p99 = torch.quantile(priorities, levels).tolist()
    return PrioritySummary(mean=float(priorities.mean()), p50=p50, p90=p90, p99=p99)


class IntervalReading(Generic[Reading]):
    """A reading that is taken again only when it is older than the interval."""

    def __init__(
        self,
        take: Callable[[], Reading],
        clock: Clock,
        *,
        interval_s: float = DEFAULT_READING_INTERVAL_S,
    ) -> None:
        self._take = take
        self._clock = clock
        self._interval_s = interval_s
        self._taken: tuple[float, Reading] | None = None

    def read(self) -> Reading:
        now_s = self._clock()
        if self._taken is None or now_s - self._taken[0] >= self._interval_s:
            self._taken = (now_s, self._take())
        return self._taken[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayStats:
    """One reading of everything; totals count from the start of the process."""

    size_items: int
    capacity_items: int
    fill: float
    """Share of the capacity that holds items, 0 to 1."""
    mass: float
    num_blocks: int
    inserted_items_total: int
    inserted_blocks_total: int
    sampled_items_total: int
    stale_priorities_total: int
    refused_priorities_total: int
    unique_ratio: float
    unique_ratio_mean: float
    priorities: PrioritySummary
    phase_ms: dict[str, float]
