"""Level maps: what each actor wrote down, added up per stage, with the picture of the level."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from common.ids import PEER_ID_PATTERN
from launch.control_room.episode_log import MAX_STAGES, STAGE_PATTERN, EpisodeLog
from launch.control_room.now import number
from launch.control_room.safe_files import modified_s, read_object

MAX_MAPS: Final = 64
MAX_DEATHS: Final = 6_000
MAX_PATH: Final = 2_000
MAX_BINS: Final = 20_000
MAX_FRONTIER: Final = 1_000
MAX_AREAS: Final = 64
AREA_PATTERN: Final = re.compile(r"[0-9]{1,6}")
Json = dict[str, object]
Steps = list[tuple[float, float]]
"""Agent steps and an x."""


def map_files(folder: Path) -> list[Path]:
    """One per actor."""
    try:
        files = sorted(folder.glob("*.json"))
    except OSError:
        return []
    return [file for file in files if PEER_ID_PATTERN.fullmatch(file.stem)][:MAX_MAPS]


def read_maps(folder: Path) -> list[Json]:
    found = (read_object(file) for file in map_files(folder))
    return [one for one in found if one is not None]


def stage_names(maps: Sequence[Json], episodes: EpisodeLog) -> list[str]:
    named = {
        str(stage)
        for one in maps
        if isinstance(stages := one.get("stages"), Mapping)
        for stage in stages
        if STAGE_PATTERN.fullmatch(str(stage))
    }
    return sorted(named | set(episodes.stages()))[:MAX_STAGES]


def stage_map(maps: Sequence[Json], stage: str, episodes: EpisodeLog) -> Json:
    """All actors together; without their maps, what the episodes of the run tell."""
    parts = [part for one in maps if (part := _part(one, stage))]
    visits: Counter[str] = Counter()
    for part in parts:
        visits.update(_visits(part))
    area = _main_area(visits)
    deaths = [place for part in parts for place in _places(part.get("deaths"), MAX_DEATHS)]
    if not deaths:
        deaths = [[area, x, y] for x, y in episodes.deaths(stage)]
    best = max((_best(part) for part in parts), key=_ground, default={})
    return {
        "stage": stage,
        "area": area,
        "bin_pixels": int(next((number(p.get("bin_pixels")) or 16 for p in parts), 16)),
        "visits": dict(visits.most_common(MAX_BINS)),
        "deaths": deaths[-MAX_DEATHS:],
        "best": {"max_x": _xs(best.get("max_x")), "path": _places(best.get("path"), MAX_PATH)},
        "frontier": _frontier(parts) or {str(area): episodes.frontier(stage)},
        "actors": len(parts),
    }


def picture_of(folder: Path, stage: str) -> Json | None:
    """Where the stitched picture of a stage lies over its pixels, or None without one."""
    record, changed_s = read_object(folder / f"{stage}.json"), modified_s(folder / f"{stage}.png")
    if record is None or changed_s is None:
        return None
    sizes = {name: number(record.get(name)) for name in ("area", "x0", "width", "height")}
    if any(value is None for value in sizes.values()):
        return None
    return {**sizes, "covered": record.get("covered"), "version": f"{changed_s:.3f}"}


def _part(one: Json, stage: str) -> Json:
    stages = one.get("stages")
    part = stages.get(stage) if isinstance(stages, Mapping) else None
    return part if isinstance(part, dict) else {}


def _visits(part: Json) -> dict[str, int]:
    visits = part.get("visits")
    if not isinstance(visits, Mapping):
        return {}
    return {
        str(place)[:24]: int(count)
        for place, steps in list(visits.items())[:MAX_BINS]
        if (count := number(steps)) is not None
    }


def _main_area(visits: Counter[str]) -> int:
    """The one in which most time is spent."""
    areas: Counter[str] = Counter()
    for place, steps in visits.items():
        areas[place.partition(":")[0]] += steps
    name = areas.most_common(1)[0][0] if areas else "0"
    return int(name) if AREA_PATTERN.fullmatch(name) else 0


def _places(value: object, limit: int) -> list[list[float | None]]:
    if not isinstance(value, list):
        return []
    return [
        [number(part) for part in place]
        for place in value[-limit:]
        if isinstance(place, list) and len(place) == 3  # noqa: PLR2004 - area, x, y; steps, area, x
    ]


def _best(part: Json) -> Json:
    best = part.get("best")
    return best if isinstance(best, dict) else {}


def _ground(best: Json) -> float:
    """By which episodes are compared: x begins anew behind a pipe."""
    return number(best.get("ground")) or 0.0


def _xs(value: object) -> dict[str, float]:
    """Farthest x by area."""
    told = list(value.items())[:MAX_AREAS] if isinstance(value, Mapping) else []
    return {
        str(area): known
        for area, x in told
        if AREA_PATTERN.fullmatch(str(area)) and (known := number(x)) is not None
    }


def _frontier(parts: Sequence[Json]) -> dict[str, Steps]:
    """By area: the farthest x of all actors over agent steps."""
    told: dict[str, Steps] = {}
    for part in parts:
        for step, area, x in _places(part.get("frontier"), MAX_FRONTIER):
            if step is None or area is None or x is None:
                continue
            if str(int(area)) in told or len(told) < MAX_AREAS:
                told.setdefault(str(int(area)), []).append((step, x))
    return {area: _rising(steps) for area, steps in told.items()}


def _rising(told: Steps) -> Steps:
    """One for each number of agent steps."""
    rising: Steps = []
    for step, x in sorted(told):
        if rising and rising[-1][0] == step:
            rising[-1] = (step, max(x, rising[-1][1]))
        elif not rising or x > rising[-1][1]:
            rising.append((step, x))
    return rising
