"""For `MARIO_SHAPING_DEBUG=1`: agent steps that moved Mario on and earned no distance."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

from actor.env.interface import Info
from actor.gains import Gain
from common.logs import RareLog

log = logging.getLogger(__name__)

DEBUG_VARIABLE = "MARIO_SHAPING_DEBUG"
TELL_EVERY_S = 5.0


def is_debugging() -> bool:
    return os.environ.get(DEBUG_VARIABLE) == "1"


class MissedGround:
    """Of one environment; says every few seconds what was missed and why."""

    def __init__(self, env_index: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._env_index = env_index
        self._clock = clock
        self._rare = RareLog(TELL_EVERY_S)
        self._x = 0
        self._missed = 0

    def begin(self, info: Info) -> None:
        self._x = int(info["x_pos"])

    def note(self, gain: Gain, info: Info) -> None:
        before, self._x = self._x, int(info["x_pos"])
        if gain.dx_pixels or self._x <= before:
            return
        self._missed += 1
        why = "unread" if gain.dx_pixels is None else "not new"
        if self._rare.allows(why, self._clock()):
            where = {"env": self._env_index, "x": self._x, "x_before": before}
            extra = {**where, "why": why, "missed": self._missed}
            log.warning("[reward][warn] dx_missed", extra=extra)
