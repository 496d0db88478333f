"""Reading films back with OpenCV, which did not write them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class FilmRead:
    codec: str
    pictures_per_s: float
    pictures: list[NDArray[np.uint8]]
    """RGB."""


def read_film(path: Path) -> FilmRead:
    capture = cv2.VideoCapture(str(path))
    code = int(capture.get(cv2.CAP_PROP_FOURCC))
    pictures = []
    while (answer := capture.read())[0]:
        pictures.append(cv2.cvtColor(answer[1], cv2.COLOR_BGR2RGB).astype(np.uint8))
    codec = code.to_bytes(4, "little").decode()
    return FilmRead(codec, capture.get(cv2.CAP_PROP_FPS), pictures)
