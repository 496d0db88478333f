from __future__ import annotations

import json
import logging
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from actor.env.scenery import STATUS_BAR_PIXELS, Scenery
from actor.level_atlas import LevelAtlas, read_level_picture
from actor.level_picture import MAX_WIDTH, LevelPicture
from tests.small_disk import small_disk_at

AREA = 42_640
SKY = (104, 136, 252)


def level_colours(width: int) -> NDArray[np.uint8]:
    """A level in which every column has a colour of its own, below one line of sky."""
    level = np.zeros((240, width, 3), dtype=np.uint8)
    level[..., 0], level[..., 1] = np.arange(width) % 256, np.arange(width) // 256
    level[STATUS_BAR_PIXELS] = SKY
    return level


LEVEL = level_colours(1_000)


def seen(left: int, *, hidden: slice | None = None, area: int = AREA) -> Scenery:
    visible = np.ones((240, 256), dtype=np.bool_)
    visible[:STATUS_BAR_PIXELS] = False
    if hidden is not None:
        visible[:, hidden] = False
    return Scenery(area, left, visible)


def screen(left: int, *, enemy: slice | None = None) -> NDArray[np.uint8]:
    picture = LEVEL[:, left : left + 256].copy()
    picture[:STATUS_BAR_PIXELS] = 255
    if enemy is not None:
        picture[:, enemy] = 255
    return picture


def test_screens_become_the_level() -> None:
    picture = LevelPicture(AREA)
    for left in range(0, 700, 12):
        assert picture.add(screen(left), seen(left))

    assert picture.covered() == [(0, 696 + 256)]
    level = LEVEL[STATUS_BAR_PIXELS:, : picture.width]
    assert np.array_equal(picture.image()[STATUS_BAR_PIXELS:, :, :3], level)
    assert (picture.image()[:STATUS_BAR_PIXELS, :, :3] == SKY).all()


def test_enemies_leave_no_trace_and_no_hole_where_they_moved_on() -> None:
    picture = LevelPicture(AREA)
    there = slice(100, 116)
    picture.add(screen(0, enemy=there), seen(0, hidden=there))

    assert picture.covered() == [(0, 100), (116, 256)]
    assert picture.add(screen(0), seen(0))
    assert picture.covered() == [(0, 256)]
    assert np.array_equal(picture.image()[40:, :, :3], LEVEL[40:, :256])


def test_what_was_seen_first_stays() -> None:
    picture = LevelPicture(AREA)
    picture.add(screen(0), seen(0))

    assert not picture.add(screen(0, enemy=slice(50, 60)), seen(0))
    assert np.array_equal(picture.image()[40:, :, :3], LEVEL[40:, :256])


def test_other_areas_and_absurd_places_are_left_out() -> None:
    picture = LevelPicture(AREA)

    assert not picture.add(screen(0), seen(0, area=7))
    assert not picture.add(screen(0), seen(MAX_WIDTH - 100))
    assert picture.covered() == []


def test_gaps_are_told_and_clear() -> None:
    picture = LevelPicture(AREA)
    picture.add(screen(0), seen(0))
    picture.add(screen(600), seen(600))

    assert picture.covered() == [(0, 256), (600, 856)]
    assert not picture.image()[:, 256:600].any()


def test_an_atlas_grows_over_its_lives(tmp_path: Path) -> None:
    folder = tmp_path / "maps"
    for left in (0, 200, 500):
        atlas = LevelAtlas(folder)
        atlas.add("1-1", screen(left), seen(left))
        atlas.save()

    facts = json.loads((folder / "1-1.json").read_text())
    image = cv2.imread(str(folder / "1-1.png"), cv2.IMREAD_UNCHANGED)
    assert facts == {
        "area": AREA,
        "x0": 0,
        "width": 756,
        "height": 240,
        "covered": [[0, 456], [500, 756]],
    }
    assert image is not None
    assert image.shape == (240, 756, 4)
    assert np.array_equal(image[40:, :456, 2::-1], LEVEL[40:, :456])


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    atlas = LevelAtlas(tmp_path)
    atlas.add("1-1", screen(0), seen(0))
    atlas.save()
    (tmp_path / "1-1.png").unlink()

    atlas.add("1-1", screen(0), seen(0))
    atlas.save()

    assert not (tmp_path / "1-1.png").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("1-1.json", b"{"), ("1-1.json", b"[]"), ("1-1.png", b""), ("1-1.png", b"no picture")],
)
def test_a_damaged_picture_is_begun_anew(tmp_path: Path, name: str, content: bytes) -> None:
    atlas = LevelAtlas(tmp_path)
    atlas.add("1-1", screen(0), seen(0))
    atlas.save()
    (tmp_path / name).write_bytes(content)

    assert read_level_picture(tmp_path, "1-1") is None
    again = LevelAtlas(tmp_path)
    again.add("1-1", screen(300), seen(300))
    again.save()
    assert json.loads((tmp_path / "1-1.json").read_text())["covered"] == [[300, 556]]


def test_a_full_disk_costs_the_picture_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk_at(tmp_path, 8_192):
        atlas = LevelAtlas(tmp_path)
        noise = np.random.default_rng(1).integers(0, 256, (240, 256, 3), dtype=np.uint8)
        atlas.add("1-1", noise, seen(0))

        with caplog.at_level(logging.WARNING):
            atlas.save()

        assert list(tmp_path.iterdir()) == []
    assert [record.getMessage() for record in caplog.records] == ["level picture not written"]
