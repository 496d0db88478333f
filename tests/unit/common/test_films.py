from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from common.errors import ConfigError, FilmFailed
from common.films import MAX_GIF_COLOURS, GifFilm, Mp4Film, Palette
from common.moments import Picture
from tests.film_reading import read_film

RATE = Fraction(15)


def gray(value: int, height: int = 32, width: int = 48) -> Picture:
    return np.full((height, width, 3), value, dtype=np.uint8)


def test_an_mp4_is_h264_with_every_picture_in_its_order(tmp_path: Path) -> None:
    film = Mp4Film(pictures_per_s=RATE, height=32, width=48)
    for value in range(0, 200, 10):
        film.add(gray(value))
    (tmp_path / "film.mp4").write_bytes(film.finish())

    read = read_film(tmp_path / "film.mp4")

    assert (read.codec, read.pictures_per_s, len(read.pictures)) == ("h264", 15.0, 20)
    assert read.pictures[0].shape == (32, 48, 3)
    means = [float(picture.mean()) for picture in read.pictures]
    assert np.allclose(means, range(0, 200, 10), atol=8)


def test_a_picture_that_the_encoder_refuses_is_our_error() -> None:
    film = Mp4Film(pictures_per_s=RATE, height=33, width=47)

    with pytest.raises(FilmFailed, match="the encoder failed"):
        film.add(gray(0, 33, 47))


def test_a_gif_keeps_the_colours_exactly(tmp_path: Path) -> None:
    colours = [(0, 0, 0), (255, 0, 1), (104, 136, 252), (3, 200, 77)]
    film = GifFilm(pictures_per_s=RATE)
    for number in range(4):
        picture = gray(0)
        picture[:, 10 * number :] = colours[number]
        film.add(picture)
    (tmp_path / "film.gif").write_bytes(film.finish())

    read = read_film(tmp_path / "film.gif")

    assert len(read.pictures) == 4
    assert [tuple(picture[5, 40].tolist()) for picture in read.pictures] == colours


def test_of_too_many_colours_the_nearest_is_taken() -> None:
    palette = Palette()
    first = np.zeros((1, MAX_GIF_COLOURS, 3), dtype=np.uint8)
    first[0, :, 0] = np.arange(MAX_GIF_COLOURS)

    palette.indices(first)
    (index,) = palette.indices(np.array([[[100, 3, 0]]], dtype=np.uint8))[0]

    assert palette.table()[index].tolist() == [255, 100, 0, 0]


def test_without_the_extra_the_next_action_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)

    with pytest.raises(ConfigError, match=r"pip install -c constraints.txt -e '\.\[video\]'"):
        Mp4Film(pictures_per_s=RATE, height=32, width=48)
