"""Shows what an actor plays to whoever looks: a file asks for it, two files answer.

`live/PEER.want` is touched by a viewer. While it is young, `live/PEER.jpg` holds the screen of the
first environment and `live/PEER.json` what goes with it, both replaced a few times per second.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from common.blocks import U8

LOOK_INTERVAL_S: Final = 0.5
WANTED_FOR_S: Final = 5.0
SHOW_INTERVAL_S: Final = 0.2
JPEG_QUALITY: Final = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is said beside a picture."""

    env_index: int
    stage: str
    x: int
    action: int
    action_labels: tuple[str, ...]
    q_values: tuple[float, ...]
    epsilon: float
    was_random: bool
    agent_steps: int


class Showcase:
    """Costs one look at a file in half a second while nobody looks."""

    def __init__(
        self,
        folder: Path,
        peer: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._peer = peer
        self._folder = folder
        self._want = folder / f"{peer}.want"
        self._clock = clock
        self._wall_clock = wall_clock
        self._looked_s = -LOOK_INTERVAL_S
        self._shown_s = -SHOW_INTERVAL_S
        self._is_wanted = False

    def is_due(self) -> bool:
        """Whether somebody looks, and has not seen anything new for a moment."""
        now_s = self._clock()
        if now_s - self._looked_s >= LOOK_INTERVAL_S:
            self._looked_s = now_s
            self._is_wanted = self._was_touched()
        return self._is_wanted and now_s - self._shown_s >= SHOW_INTERVAL_S

    def show(self, screen: U8, scene: Scene) -> None:
        """`screen` is RGB [H, W, 3]. A disk that is full shows nothing and harms nobody."""
        self._shown_s = self._clock()
        # The values of a network that has diverged are no JSON: null, and the file stays readable.
        values = [value if math.isfinite(value) else None for value in scene.q_values]
        about = {"time": self._wall_clock(), "peer": self._peer}
        told = {**about, **asdict(scene), "q_values": values}
        try:
            self._replace("jpg", as_jpeg(screen))
            self._replace("json", json.dumps(told, allow_nan=False).encode())
        except OSError:
            self._is_wanted = False

    def _was_touched(self) -> bool:
        try:
            touched = self._want.stat().st_mtime
        except OSError:
            return False
        return abs(self._wall_clock() - touched) <= WANTED_FOR_S

    def _replace(self, kind: str, content: bytes) -> None:
        """Whole or not at all for readers; nothing that must outlive a power cut."""
        path = self._folder / f"{self._peer}.{kind}"
        temporary = path.with_name(f".tmp-{path.name}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
            file.write(content)
        temporary.replace(path)


def as_jpeg(screen: NDArray[np.uint8]) -> bytes:
    # cv2 thinks in BGR.
    is_done, encoded = cv2.imencode(
        ".jpg", np.ascontiguousarray(screen[:, :, ::-1]), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY]
    )
    if not is_done:
        raise OSError("the picture could not be encoded")
    return encoded.tobytes()
