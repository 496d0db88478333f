"""Which hints are given when: at most one of a kind per interval, and rarer while it stays true."""

from __future__ import annotations

import math
from collections import deque
from typing import Final

from common.config import Settings
from launch.evidence import Values, seconds_of
from launch.hints import find_hints

MAX_LINES: Final = 2_000
MAX_DOUBLINGS: Final = 4
NAMES: Final = (
    "run_time_s",
    "global_step",
    "updates",
    "episodes_total",
    "avg_return",
    "recent_clear_rate",
    "env_mean_x_pos",
    "replay_push_total",
    "actors_alive",
    "skipped_updates_total",
    "learning_rate",
    "gpu_util_mean_window",
    "wait_share_learner",
    "wait_share_actors",
    "wait_share_replay",
)
"""All that is asked of a line: thousands of lines are remembered."""


class Advisor:
    """Remembers the lines of a run, and which hints were given when."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lines: deque[Values] = deque(maxlen=MAX_LINES)
        self._given: dict[str, tuple[float, int]] = {}
        """By kind: when, and how often in a row."""

    def look(self, metrics: Values, now_s: float) -> list[str]:
        """Hints for the person at the terminal, after a new line of metrics.

        One of a kind per interval; while it stays true, the interval doubles.
        """
        if not self._settings.diagnosis.hints or not self._note(metrics):
            return []
        found = {hint.kind: hint.text for hint in find_hints(list(self._lines), self._settings)}
        for kind, (given_s, _) in self._given.items():
            if kind not in found:
                self._given[kind] = (given_s, 0)
        return [text for kind, text in found.items() if self._may_say(kind, now_s)]

    def _note(self, metrics: Values) -> bool:
        line = {name: metrics.get(name) for name in NAMES}
        if not metrics or (self._lines and line == self._lines[-1]):
            return False
        if self._lines and seconds_of(line) < seconds_of(self._lines[-1]):
            # Another life of the learner.
            self._lines.clear()
        self._lines.append(line)
        return True

    def _may_say(self, kind: str, now_s: float) -> bool:
        given_s, times = self._given.get(kind, (-math.inf, 0))
        interval_s = self._settings.diagnosis.hint_interval_s
        if now_s - given_s < interval_s * 2 ** min(max(times - 1, 0), MAX_DOUBLINGS):
            return False
        self._given[kind] = (now_s, times + 1)
        return True
