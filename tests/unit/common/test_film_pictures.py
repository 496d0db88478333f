from __future__ import annotations

from dataclasses import replace

import cv2
import numpy as np
import pytest

from common.film_pictures import (
    FILM_HEIGHT,
    FILM_WIDTH,
    SheetMoments,
    contact_sheet,
    film_picture,
    png_bytes,
    small_picture,
)
from common.moments import Picture, bar_lengths
from tests.moment_factory import make_moment


def test_a_film_shows_the_screen_twice_as_large_and_a_panel_beside_it() -> None:
    picture = film_picture(make_moment(77))

    assert picture.shape == (FILM_HEIGHT, FILM_WIDTH, 3)
    assert (picture[:, :512] == 77).all()
    assert (picture[:, 512:] != picture[0, -1]).any()


def count_of(picture: Picture, colour: tuple[int, int, int]) -> int:
    return int((picture == np.array(colour, dtype=np.uint8)).all(axis=2).sum())


def test_the_bar_of_the_action_that_was_taken_stands_out() -> None:
    chosen = (240, 160, 40)
    moment = make_moment()

    best, worst = (count_of(film_picture(replace(moment, action=one)), chosen) for one in (1, 0))

    assert best > 10 * worst > 0


def test_every_action_of_the_largest_set_fits() -> None:
    labels = tuple(f"down+A+B {number}" for number in range(17))
    moment = replace(make_moment(), action_labels=labels, q_values=tuple(map(float, range(17))))

    picture = film_picture(moment)

    assert (picture[-4:, 512:] == picture[0, -1]).all()


def test_a_person_has_no_values() -> None:
    picture = film_picture(replace(make_moment(), q_values=()))

    assert (picture[168:, 512:] == picture[0, -1]).all()


def test_a_small_picture_has_few_colours() -> None:
    picture = small_picture(make_moment(200))

    assert picture.shape == (260, 256, 3)
    assert len(np.unique(picture.reshape(-1, 3), axis=0)) <= 16


@pytest.mark.parametrize("length", [1, 5, 12, 13, 24, 100, 1_234])
def test_a_sheet_holds_moments_from_the_first_to_the_last(length: int) -> None:
    moments = SheetMoments(12)
    for number in range(length):
        moments.add(make_moment(number))

    numbers = [moment.agent_steps for moment in moments.chosen()]

    assert len(numbers) == min(12, length)
    assert (numbers[0], numbers[-1]) == (0, length - 1)
    assert numbers == sorted(set(numbers))
    gaps = np.diff(numbers)
    assert length < 24 or gaps.max() <= 4 * max(1, gaps[:-1].min())


def test_a_sheet_of_nothing_is_empty() -> None:
    assert SheetMoments().chosen() == []


def test_a_contact_sheet_is_in_reading_order() -> None:
    sheet = contact_sheet([make_moment(number) for number in range(1, 7)])

    assert sheet.shape == (2 * 260, 4 * 256, 3)
    assert [int(sheet[100, 128 + 256 * column, 0]) for column in range(4)] == [1, 2, 3, 4]
    assert [int(sheet[360, 128 + 256 * column, 0]) for column in range(2)] == [5, 6]


def test_a_png_keeps_colours_and_what_is_clear() -> None:
    picture = np.zeros((4, 4, 4), dtype=np.uint8)
    picture[1, 2] = (250, 100, 3, 255)

    read = cv2.imdecode(np.frombuffer(png_bytes(picture), np.uint8), cv2.IMREAD_UNCHANGED)

    assert read is not None
    assert read[1, 2].tolist() == [3, 100, 250, 255]
    assert read[0, 0, 3] == 0


def test_bars_tell_close_values_apart() -> None:
    assert bar_lengths((12.0, 12.5, 13.0), 21) == [1, 11, 21]
    assert bar_lengths((2.0, 2.0), 7) == [7, 7]
    assert bar_lengths((), 7) == []


def test_values_of_a_network_that_has_diverged_are_drawn_as_the_shortest_bars() -> None:
    nan, infinity = float("nan"), float("inf")

    assert bar_lengths((12.0, nan, 13.0, infinity, -infinity), 21) == [1, 1, 21, 1, 1]
    assert bar_lengths((nan, nan), 7) == [1, 1]
