"""The pictures of the levels on the disk: `maps/STAGE.png` and `.json`, known better over time."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import cv2
import numpy as np

from actor.env.core import SCREEN_HEIGHT
from actor.env.scenery import Scenery
from actor.level_picture import LevelPicture
from common.atomic_files import write_atomic
from common.film_pictures import png_bytes
from common.moments import Picture

log = logging.getLogger(__name__)


class LevelAtlas:
    """One picture per stage: of the area in which its episodes begin."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pictures: dict[str, LevelPicture] = {}
        self._changed: set[str] = set()

    def add(self, stage: str, screen: Picture, scenery: Scenery) -> None:
        """A screen of an episode; the first of a stage must be from the start of one."""
        if stage not in self._pictures:
            known = read_level_picture(self._folder, stage)
            is_same = known is not None and known.area == scenery.area
            self._pictures[stage] = known if known and is_same else LevelPicture(scenery.area)
        if self._pictures[stage].add(screen, scenery):
            self._changed.add(stage)

    def save(self) -> None:
        """Write what has changed. A full disk is told and leaves the old picture."""
        for stage in sorted(self._changed):
            try:
                self._write(stage, self._pictures[stage])
            except OSError as error:
                log.warning(
                    "level picture not written", extra={"stage": stage, "error": str(error)}
                )
        self._changed.clear()

    def _write(self, stage: str, picture: LevelPicture) -> None:
        facts = {
            "area": picture.area,
            "x0": 0,
            "width": picture.width,
            "height": SCREEN_HEIGHT,
            "covered": picture.covered(),
        }
        self._folder.mkdir(exist_ok=True)
        write_atomic(self._folder / f"{stage}.png", png_bytes(picture.image()))
        write_atomic(self._folder / f"{stage}.json", json.dumps(facts).encode())


def read_level_picture(folder: Path, stage: str) -> LevelPicture | None:
    """What was kept earlier; None where there is nothing, or nothing of use."""
    try:
        facts = json.loads((folder / f"{stage}.json").read_bytes())
        area = int(facts["area"])
        encoded = np.frombuffer((folder / f"{stage}.png").read_bytes(), dtype=np.uint8)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    image = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED) if encoded.size else None
    if image is None or image.ndim != 3 or image.shape[::2] != (SCREEN_HEIGHT, 4):  # noqa: PLR2004
        return None
    return LevelPicture(area, cv2.cvtColor(image, cv2.COLOR_BGRA2RGBA).astype(np.uint8))
