"""Where Mario has been, where he died and how far he came: notes for maps of the stages.

One file per actor, `maps/PEER.json`, replaced now and then. A place is an area, named by the
address of its map, and pixels in it.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from actor.env.interface import Info
from common.atomic_files import write_atomic
from common.logs import RareLog

log = logging.getLogger(__name__)

BIN_PIXELS: Final = 16
MAX_DEATHS: Final = 2_000
MAX_PATH: Final = 2_000
MAX_FRONTIER: Final = 1_000
WRITE_INTERVAL_S: Final = 20.0
SCREEN_HEIGHT: Final = 256
LEAP: Final = 128
"""Pixels that nobody rises within an agent step: the console counts a fall out of the screen so."""
Spot = tuple[int, int, int]
"""Area, x, y; y is below 0 where Mario has fallen out of the screen."""


def spot_of(info: Info) -> Spot:
    return int(info.get("area", 0)), int(info["x_pos"]), int(info.get("y_pos", 0))


def after(before: Spot | None, spot: Spot) -> Spot:
    """The same place, below the screen if that is where he fell: one byte tells the height."""
    area, x, y = spot
    if before is None or before[0] != area or y - before[2] <= LEAP:
        return spot
    return area, x, y - SCREEN_HEIGHT


@dataclass(slots=True)
class StageNotes:
    """Of one stage."""

    visits: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Agent steps by area and bin."""
    deaths: deque[Spot] = field(default_factory=lambda: deque(maxlen=MAX_DEATHS))
    best_ground: int = -1
    best_path: list[Spot] = field(default_factory=list)
    frontier: list[tuple[int, int]] = field(default_factory=list)
    """Agent steps of the run, pixels of ground: one for every new best."""

    def as_json(self) -> dict[str, object]:
        return {
            "bin_pixels": BIN_PIXELS,
            "visits": {f"{area}:{place}": count for (area, place), count in self.visits.items()},
            "deaths": [list(spot) for spot in self.deaths],
            "best": {"max_x": self.best_ground, "path": [list(spot) for spot in self.best_path]},
            "frontier": [list(point) for point in self.frontier],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeEnd:
    """What an episode came to."""

    stage: str
    ground: int
    is_death: bool
    from_start: bool
    """False: it began in the middle, and its way is only half of one."""


class LevelNotes:
    """Of one actor; `note` after every agent step, `end` after every episode."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._written_s = clock()
        self._stages: dict[str, StageNotes] = {}
        self.run_agent_steps = 0
        """As far as the actor knows."""
        self._rare = RareLog()

    def note(self, stage: str, info: Info, path: list[Spot]) -> None:
        """`path` is that of the episode; it grows here."""
        spot = area, x, _ = after(path[-1] if path else None, spot_of(info))
        self._of(stage).visits[area, x // BIN_PIXELS] += 1
        if len(path) < MAX_PATH:
            path.append(spot)

    def end(self, end: EpisodeEnd, path: list[Spot]) -> None:
        notes = self._of(end.stage)
        if end.is_death and path:
            notes.deaths.append(path[-1])
        if end.from_start and end.ground > notes.best_ground:
            notes.best_ground, notes.best_path = end.ground, path
            if len(notes.frontier) < MAX_FRONTIER:
                notes.frontier.append((self.run_agent_steps, end.ground))

    def write_if_due(self) -> None:
        """A disk that is full costs the map and nothing else."""
        now_s = self._clock()
        if not self._stages or now_s - self._written_s < WRITE_INTERVAL_S:
            return
        self._written_s = now_s
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(self._path, json.dumps(self.as_json()).encode())
        except OSError as error:
            if self._rare.allows("map not written", now_s):
                log.warning("map not written", extra={"reason": str(error)})

    def as_json(self) -> dict[str, object]:
        stages = {stage: notes.as_json() for stage, notes in self._stages.items()}
        return {"time": time.time(), "stages": stages}

    def _of(self, stage: str) -> StageNotes:
        return self._stages.setdefault(stage, StageNotes())


class LanePath:
    """The way of the running episode of one environment."""

    def __init__(self, notes: LevelNotes) -> None:
        self._notes = notes
        self._path: list[Spot] = []

    def begin(self) -> None:
        self._path = []

    def note(self, stage: str, info: Info) -> None:
        self._notes.note(stage, info, self._path)

    def end(self, end: EpisodeEnd) -> None:
        self._notes.end(end, self._path)
