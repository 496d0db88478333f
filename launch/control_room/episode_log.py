"""The newest training episodes of a run, for maps of where they ended; bounded."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import Final

from launch.control_room.now import number

STAGE_PATTERN: Final = re.compile(r"[1-8]-[1-4]|corridor")
MAX_DEATHS: Final = 4_000
MAX_FRONTIER: Final = 2_000
MAX_STAGES: Final = 40


class EpisodeLog:
    """Per stage: where episodes were lost, and the farthest place over time."""

    def __init__(self) -> None:
        self.episodes = 0
        self._deaths: dict[str, deque[tuple[float, float | None]]] = {}
        self._frontier: dict[str, list[tuple[float, float]]] = {}

    def append(self, record: Mapping[str, object]) -> None:
        stage, max_x = str(record.get("stage")), number(record.get("max_x"))
        if STAGE_PATTERN.fullmatch(stage) is None or max_x is None:
            return
        self.episodes += 1
        if not record.get("cleared") and not record.get("truncated"):
            x = number(record.get("final_x"))
            place = (max_x if x is None else x, number(record.get("final_y")))
            self._deaths.setdefault(stage, deque(maxlen=MAX_DEATHS)).append(place)
        self._note_frontier(stage, number(record.get("global_step")) or 0.0, max_x)

    def _note_frontier(self, stage: str, step: float, max_x: float) -> None:
        known = self._frontier.setdefault(stage, [])
        if not known or max_x > known[-1][1]:
            known.append((step, max_x))
        del known[: max(0, len(known) - MAX_FRONTIER)]

    def stages(self) -> list[str]:
        return sorted(self._frontier)[:MAX_STAGES]

    def deaths(self, stage: str) -> list[tuple[float, float | None]]:
        return list(self._deaths.get(stage, ()))

    def frontier(self, stage: str) -> list[tuple[float, float]]:
        return list(self._frontier.get(stage, ()))
