"""Films an evaluation after it has ended: the best and the worst episode, played once more.

Greedy play follows from the network, the stage and the frames waited, so what is filmed is what
was judged. A disk that is full or an encoder that fails costs the film, never the evaluation.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from actor.env.episode import FRAMES_PER_SECOND
from actor.episode_player import EpisodePlayer
from actor.level_atlas import LevelAtlas
from common.atomic_files import write_atomic
from common.errors import ConfigError, FilmFailed
from common.evaluation import EpisodeResult
from common.film_pictures import (
    FILM_HEIGHT,
    FILM_WIDTH,
    SheetMoments,
    contact_sheet,
    film_picture,
    png_bytes,
)
from common.films import Film, Mp4Film, load_pyav
from common.moments import Moment
from common.video_folder import film_name, prune_films

log = logging.getLogger(__name__)

HELD_PICTURES = 15
"""How often the last picture is repeated, so that the end can be seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Take:
    """An episode to be played once more."""

    result: EpisodeResult
    name: str
    """Of the film, without its suffix; empty for an episode that is only looked at."""


@dataclass(slots=True, kw_only=True)
class Roll:
    """A film in the making."""

    film: Film
    sheet: SheetMoments = field(default_factory=SheetMoments)

    def add(self, moment: Moment) -> None:
        self.film.add(film_picture(moment))
        self.sheet.add(moment)


class FilmCrew:
    """Borrows the player of an evaluator between two evaluations."""

    def __init__(
        self, player: EpisodePlayer, *, videos: Path, maps: Path, keep: int, frame_skip: int
    ) -> None:
        self._player = player
        self._videos = videos
        self._keep = keep
        self._pictures_per_s = Fraction(FRAMES_PER_SECOND, frame_skip)
        self._atlas = LevelAtlas(maps)
        self._looked_at: dict[str, int] = {}
        """Farthest x of the episodes that were looked at, by stage."""
        self._waiting: list[Take] = []
        self._roll: Roll | None = None
        self._is_playing = False
        self.films = 0
        """Written since the start."""
        try:
            load_pyav()
            self._can_film = True
        except ConfigError as error:
            self._can_film = False
            log.warning("evaluations are not filmed", extra={"reason": str(error)})

    @property
    def is_busy(self) -> bool:
        return bool(self._waiting)

    def begin(self, results: Sequence[EpisodeResult], agent_steps: int) -> None:
        """Of an evaluation that has ended; its network must stay until all is filmed."""
        self._waiting = choose_takes(results, agent_steps) if self._can_film else []
        shown = farthest_by_stage([take.result for take in self._waiting])
        reached = {result.stage: result.max_x for result in shown}
        for result in farthest_by_stage(results):
            # The best by its worth need not be the one that saw most of the level.
            known = max(reached.get(result.stage, 0), self._looked_at.get(result.stage, 0))
            if result.max_x > known:
                self._waiting.append(Take(result=result, name=""))

    def advance(self, agent_steps: int) -> None:
        """Play a little of the take that goes on."""
        take = self._waiting[0]
        if not self._is_playing:
            self._start(take)
        for _ in range(agent_steps):
            played = self._player.advance(1)
            self._look(take)
            if played is not None:
                self._end(take, played.result)
                return

    def _start(self, take: Take) -> None:
        self._is_playing = True
        self._player.begin(take.result.task)
        self._roll = Roll(film=self._new_film()) if take.name else None
        self._look(take)

    def _look(self, take: Take) -> None:
        moment, scenery = self._player.look(), self._player.scenery()
        if scenery is not None:
            self._atlas.add(take.result.stage, moment.screen, scenery)
        if self._roll is None:
            return
        try:
            self._roll.add(moment)
        except FilmFailed as error:
            self._give_up(take, error)

    def _end(self, take: Take, result: EpisodeResult) -> None:
        self._is_playing = False
        self._waiting.pop(0)
        stage = result.stage
        self._looked_at[stage] = max(self._looked_at.get(stage, 0), take.result.max_x)
        if (result.agent_steps, result.max_x) != (take.result.agent_steps, take.result.max_x):
            log.warning("filmed another episode than was judged", extra={"film": take.name})
        if self._roll is not None:
            try:
                self._develop(take, self._roll)
            except (FilmFailed, OSError) as error:
                self._give_up(take, error)
        self._roll = None
        if not self._waiting:
            self._atlas.save()
            prune_films(self._videos, self._keep)

    def _develop(self, take: Take, roll: Roll) -> None:
        moments = roll.sheet.chosen()
        for _ in range(HELD_PICTURES):
            roll.film.add(film_picture(moments[-1]))
        content = roll.film.finish()
        self._videos.mkdir(exist_ok=True)
        write_atomic(self._videos / f"{take.name}.mp4", content)
        write_atomic(self._videos / f"{take.name}.png", png_bytes(contact_sheet(moments)))
        self.films += 1

    def _give_up(self, take: Take, error: Exception) -> None:
        self._roll = None
        log.warning("film not written", extra={"film": take.name, "error": str(error)})

    def _new_film(self) -> Film:
        return Mp4Film(pictures_per_s=self._pictures_per_s, height=FILM_HEIGHT, width=FILM_WIDTH)


def choose_takes(results: Sequence[EpisodeResult], agent_steps: int) -> list[Take]:
    """The best and the worst; one that is both is filmed as the best."""
    ordered = sorted(results, key=lambda result: result.worth)
    chosen = {"best": ordered[-1], "worst": ordered[0]}
    if chosen["best"].task.start == chosen["worst"].task.start:
        del chosen["worst"]
    return [
        Take(result=result, name=film_name(agent_steps, which)) for which, result in chosen.items()
    ]


def farthest_by_stage(results: Sequence[EpisodeResult]) -> list[EpisodeResult]:
    farthest: dict[str, EpisodeResult] = {}
    for result in results:
        best = farthest.get(result.stage)
        if best is None or result.max_x > best.max_x:
            farthest[result.stage] = result
    return list(farthest.values())
