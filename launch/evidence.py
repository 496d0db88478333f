"""Metrics lines of one life of the learner, and questions about them; no clock, no files."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from common.config import Settings

Values = Mapping[str, object]


def number_in(value: object) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(str(value)) if is_number else None


def seconds_of(line: Values) -> float:
    """Since that start of the learner."""
    return number_in(line.get("run_time_s")) or 0.0


class Evidence:
    """Lines, oldest first; never empty."""

    def __init__(self, lines: Sequence[Values], settings: Settings) -> None:
        self.lines = lines
        self.settings = settings

    @property
    def last(self) -> Values:
        return self.lines[-1]

    def number(self, name: str) -> float | None:
        return number_in(self.last.get(name))

    def recent(self, window_s: float) -> Evidence | None:
        """The last seconds; None while there are fewer."""
        begin_s = seconds_of(self.last) - window_s
        if seconds_of(self.lines[0]) > begin_s:
            return None
        # The last line before the window is where growth begins.
        first = max(i for i, line in enumerate(self.lines) if seconds_of(line) <= begin_s)
        return Evidence(self.lines[first:], self.settings)

    def learning(self) -> Evidence | None:
        """What came after the first update of this life."""
        before = number_in(self.lines[0].get("updates")) or 0
        learned = [line for line in self.lines if (number_in(line.get("updates")) or 0) > before]
        return Evidence(learned, self.settings) if learned else None

    def mean(self, name: str) -> float | None:
        known = [number_in(line.get(name)) for line in self.lines]
        numbers = [value for value in known if value is not None]
        return statistics.fmean(numbers) if numbers else None

    def growth(self, name: str) -> float | None:
        """From the first line to the last; None where one of them does not know."""
        first, last = number_in(self.lines[0].get(name)), number_in(self.last.get(name))
        return None if first is None or last is None else last - first
