"""Where a process spends its time: seconds per named phase, as shares of an interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class PhaseTimer:
    """Adds up the time of each phase; `shares` reports and starts a new interval."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._since = clock()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        start = self._clock()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + self._clock() - start

    def shares(self) -> dict[str, float]:
        """Share of the time since the last call that each phase took, 0 to 1."""
        now = self._clock()
        elapsed = max(now - self._since, 1e-9)
        shares = {name: min(spent / elapsed, 1.0) for name, spent in self._seconds.items()}
        self._seconds = dict.fromkeys(self._seconds, 0.0)
        self._since = now
        return shares
