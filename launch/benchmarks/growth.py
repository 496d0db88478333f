"""A part of the benchmark `replay`: whether the memory of a process grows while it serves."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from launch.benchmarks.measure import Row, figure

BYTES = "byte"
FIRST_ROUNDS = 2
"""They bring the slots that batches are written to and the buffers of sockets."""
ENOUGH_READINGS = 6
"""Of fewer a line and a step explain nearly anything."""


class MemoryWatch:
    """Readings of the memory of a process, one in each round, and what they say together."""

    def __init__(
        self, read_bytes: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read_bytes = read_bytes
        self._clock = clock
        self._sizes: list[float] = []
        self._minutes: list[float] = []

    def read(self) -> None:
        self._sizes.append(float(self._read_bytes()))
        self._minutes.append(self._clock() / 60)

    def rows(self) -> list[Row]:
        """The memory in settled rounds; its growth only where there are enough of them.

        The difference of both ends of these has the step in it that the slope leaves out.
        """
        settled = self._sizes[FIRST_ROUNDS:] or self._sizes[-1:]
        rows = [figure("memory of the server between batches", settled, BYTES)]
        if len(settled) >= ENOUGH_READINGS:
            minutes = self._minutes[FIRST_ROUNDS:]
            name = f"its growth in {minutes[-1] - minutes[0]:.0f} minutes, one step left out"
            growth = growth_per_minute(minutes, settled)
            rows.append(figure(name, [growth], f"{BYTES}/min"))
            more = settled[-1] - settled[0]
            rows.append(
                figure(f"memory at the end less that in round {FIRST_ROUNDS + 1}", [more], BYTES)
            )
        return rows

    def notes(self) -> tuple[str, ...]:
        enough = FIRST_ROUNDS + ENOUGH_READINGS
        if len(self._sizes) >= enough:
            return ()
        return (f"growth of the server's memory is not told: it takes --rounds {enough} or more",)


def growth_per_minute(minutes: Sequence[float], sizes: Sequence[float]) -> float:
    """The slope of a line through the readings, beside one step wherever that explains most.

    An allocator that keeps a batch once makes one step, which is no growth; a leak goes on.
    """
    times, values = np.array(minutes) - minutes[0], np.array(sizes) - sizes[0]

    def fit(step: int) -> tuple[float, float]:
        """What is left unexplained by a step before this reading, and the slope beside it."""
        is_after = np.arange(len(values)) >= step
        columns = np.stack([np.ones_like(times), times, is_after], axis=1)
        solution = np.linalg.lstsq(columns, values, rcond=None)[0]
        return float(np.square(columns @ solution - values).sum()), float(solution[1])

    return min(fit(step) for step in range(1, len(values)))[1]
