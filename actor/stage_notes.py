"""What an actor knows of one stage: where time went, where Mario died, and how far he came; pure.

A place is an area, named by the address of its map, and pixels in it: pipes lead to areas whose
pixels begin anew, so an x says nothing without its area.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

BIN_PIXELS: Final = 16
MAX_DEATHS: Final = 2_000
MAX_PATH: Final = 2_000
MAX_FRONTIER: Final = 1_000
SCREEN_HEIGHT: Final = 256
LEAP: Final = 128
"""Pixels that nobody rises within an agent step: the console counts a fall out of the screen so."""
Spot = tuple[int, int, int]
"""Area, x, y; y is below 0 where Mario has fallen out of the screen."""


def after(before: Spot | None, spot: Spot) -> Spot:
    """The same place, below the screen if that is where he fell: one byte tells the height."""
    area, x, y = spot
    if before is None or before[0] != area or y - before[2] <= LEAP:
        return spot
    return area, x, y - SCREEN_HEIGHT


@dataclass(slots=True)
class Way:
    """Of one episode."""

    spots: list[Spot] = field(default_factory=list)
    """Its beginning, up to `MAX_PATH`."""
    last: Spot | None = None
    farthest: dict[int, int] = field(default_factory=dict)
    """x by area."""

    def go_on(self, spot: Spot) -> Spot:
        self.last = area, x, _ = after(self.last, spot)
        self.farthest[area] = max(x, self.farthest.get(area, x))
        if len(self.spots) < MAX_PATH:
            self.spots.append(self.last)
        return self.last


@dataclass(slots=True)
class StageNotes:
    """Of one stage."""

    visits: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Agent steps by area and bin."""
    deaths: deque[Spot] = field(default_factory=lambda: deque(maxlen=MAX_DEATHS))
    best_ground: int = -1
    """New ground of the best episode in pixels, over all areas: what makes it the best."""
    best: Way = field(default_factory=Way)
    frontier: list[tuple[int, int, int]] = field(default_factory=list)
    """Agent steps of the run, area, x: one for every x that was the farthest of its area."""
    _farthest: dict[int, int] = field(default_factory=dict)

    def note_best(self, ground: int, way: Way, run_agent_steps: int) -> None:
        """After an episode from the start of the stage."""
        if ground > self.best_ground:
            self.best_ground, self.best = ground, way
        for area, x in way.farthest.items():
            if x > self._farthest.get(area, -1):
                self._farthest[area] = x
                if len(self.frontier) < MAX_FRONTIER:
                    self.frontier.append((run_agent_steps, area, x))

    def as_json(self) -> dict[str, object]:
        return {
            "bin_pixels": BIN_PIXELS,
            "visits": {f"{area}:{place}": count for (area, place), count in self.visits.items()},
            "deaths": [list(spot) for spot in self.deaths],
            "best": {
                "ground": self.best_ground,
                "max_x": {str(area): x for area, x in self.best.farthest.items()},
                "path": [list(spot) for spot in self.best.spots],
            },
            "frontier": [list(point) for point in self.frontier],
        }


def notes_from(told: Mapping[str, Any]) -> StageNotes:
    """What `as_json` gave; anything else raises KeyError, TypeError or ValueError."""
    if told["bin_pixels"] != BIN_PIXELS:
        raise ValueError(f"bins of {told['bin_pixels']} pixels, expected {BIN_PIXELS}")
    best = told["best"]
    notes = StageNotes(
        visits=Counter({_bin(name): int(count) for name, count in dict(told["visits"]).items()}),
        deaths=deque((_three(spot) for spot in told["deaths"]), maxlen=MAX_DEATHS),
        best_ground=int(best["ground"]),
        best=Way(
            spots=[_three(spot) for spot in best["path"][:MAX_PATH]],
            farthest={int(area): int(x) for area, x in dict(best["max_x"]).items()},
        ),
        frontier=[_three(point) for point in told["frontier"][:MAX_FRONTIER]],
    )
    for _, area, x in notes.frontier:
        notes._farthest[area] = max(x, notes._farthest.get(area, x))
    return notes


def _bin(name: str) -> tuple[int, int]:
    area, place = name.split(":")
    return int(area), int(place)


def _three(values: list[int]) -> tuple[int, int, int]:
    first, second, third = (int(value) for value in values)
    return first, second, third
