"""Episodes as a film on the disk, with a contact sheet beside it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from common.atomic_files import write_atomic
from common.errors import ConfigError
from common.evaluation import EpisodeResult, EpisodeTask
from common.film_pictures import (
    FILM_HEIGHT,
    FILM_WIDTH,
    SheetMoments,
    contact_sheet,
    film_picture,
    png_bytes,
    small_picture,
)
from common.films import Film, GifFilm, Mp4Film, load_pyav
from common.moments import Moment
from launch.play_terminal import Pace, Player

GIF: Final = ".gif"
SUFFIXES: Final = (".mp4", GIF)
MOST_GIF_PICTURES_PER_S: Final = 50
"""Programs that show GIFs slow down what is faster."""


def check_film_path(path: Path) -> None:
    """Before anything is played: whether a film can be written there."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"--video must end in {' or '.join(SUFFIXES)}, got {path}")
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise ConfigError(f"--video must be a file in a folder that exists, got {path}")
    load_pyav()


class Camera:
    """A film in the making, small and without a panel where it is a GIF."""

    def __init__(self, path: Path, pace: Pace) -> None:
        self._path = path
        self._pictures_per_s = Fraction(1 / pace.agent_step_s).limit_denominator(100)
        self._sheet = SheetMoments()
        if path.suffix != GIF:
            self._draw = film_picture
            self._film: Film = Mp4Film(
                pictures_per_s=self._pictures_per_s, height=FILM_HEIGHT, width=FILM_WIDTH
            )
            return
        if self._pictures_per_s > MOST_GIF_PICTURES_PER_S:
            raise ConfigError(
                f"a GIF shows at most {MOST_GIF_PICTURES_PER_S} pictures a second; lower --speed"
            )
        self._draw = small_picture
        self._film = GifFilm(pictures_per_s=self._pictures_per_s)

    def take(self, moment: Moment) -> None:
        self._film.add(self._draw(moment))
        self._sheet.add(moment)

    def hold(self, moment: Moment) -> None:
        """The end of an episode can be seen for a second."""
        for _ in range(round(self._pictures_per_s)):
            self._film.add(self._draw(moment))

    def write(self) -> None:
        sheet = png_bytes(contact_sheet(self._sheet.chosen()))
        try:
            write_atomic(self._path, self._film.finish())
            write_atomic(self._path.with_suffix(".png"), sheet)
        except OSError as error:
            raise ConfigError(f"cannot write {self._path}: {error.strerror}") from error


def film_episodes(
    player: Player, tasks: Sequence[EpisodeTask], path: Path, pace: Pace
) -> list[EpisodeResult]:
    camera = Camera(path, pace)
    results = [_film_one(player, task, camera) for task in tasks]
    camera.write()
    return results


def _film_one(player: Player, task: EpisodeTask, camera: Camera) -> EpisodeResult:
    player.begin(task)
    camera.take(player.look())
    while (played := player.advance(1)) is None:
        camera.take(player.look())
    end = player.look()
    camera.take(end)
    camera.hold(end)
    return played.result
