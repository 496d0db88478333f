"""Where Mario has been, where he died and how far he came: notes for maps of the stages.

One file per actor, `maps/PEER.json`, replaced now and then; an actor that is started again goes on
with the one it finds.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from actor.env.interface import Info
from actor.stage_notes import BIN_PIXELS, Spot, StageNotes, Way, notes_from
from common.atomic_files import write_atomic
from common.logs import RareLog

log = logging.getLogger(__name__)

WRITE_INTERVAL_S: Final = 20.0


def spot_of(info: Info) -> Spot:
    return int(info.get("area", 0)), int(info["x_pos"]), int(info.get("y_pos", 0))


def read_notes(path: Path) -> dict[str, StageNotes]:
    """By stage; nothing where there is no such file, or one that is not ours."""
    try:
        stages = json.loads(path.read_bytes())["stages"]
        return {str(stage): notes_from(told) for stage, told in dict(stages).items()}
    except FileNotFoundError:
        return {}
    except (OSError, LookupError, TypeError, ValueError, RecursionError) as error:
        log.warning("map not read, begun anew", extra={"reason": str(error)})
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeEnd:
    """What an episode came to."""

    stage: str
    ground: int
    """New ground in pixels, over all areas."""
    is_death: bool
    from_start: bool
    """False: it began in the middle, and its way is only half of one."""


class LevelNotes:
    """Of one actor; `note` after every agent step, `end` after every episode."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._written_s = clock()
        self._stages = read_notes(path)
        self.run_agent_steps = 0
        """As far as the actor knows."""
        self._rare = RareLog()

    def note(self, stage: str, info: Info, way: Way) -> None:
        """`way` is that of the episode; it grows here."""
        area, x, _ = way.go_on(spot_of(info))
        self._of(stage).visits[area, x // BIN_PIXELS] += 1

    def end(self, end: EpisodeEnd, way: Way) -> None:
        notes = self._of(end.stage)
        if end.is_death and way.last is not None:
            notes.deaths.append(way.last)
        if end.from_start:
            notes.note_best(end.ground, way, self.run_agent_steps)

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
        self._way = Way()

    def begin(self) -> None:
        self._way = Way()

    def note(self, stage: str, info: Info) -> None:
        self._notes.note(stage, info, self._way)

    def end(self, end: EpisodeEnd) -> None:
        self._notes.end(end, self._way)
