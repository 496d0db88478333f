"""What an agent step gained: new ground and points, as shaping and scripts see it.

Progress, not position: where an episode begins is no gain, nor is the other end of a pipe, nor
ground that the episode has been on before.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Protocol

from actor.env.interface import EnvProtocol, Info, MemoryEnv

log = logging.getLogger(__name__)

FAIL_LIMIT = 50
WALKED_PIXELS_PER_FRAME = 5
"""More is a pipe or a maze; the same limit as in the reward of gym-super-mario-bros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RamX:
    """Where x lies in the RAM, and how far an agent step can lead."""

    high_address: int
    low_address: int
    frame_skip: int


class GroundSource(Protocol):
    """Where one environment's new ground is read from."""

    def begin(self, info: Info) -> None:
        """An episode has begun, with the info of its start."""
        ...

    def gained(self, info: Info) -> int | None:
        """Pixels of new ground in the newest agent step; None when x cannot be read."""
        ...


class InfoGround:
    """The environment's own count, which knows areas, pipes and mazes."""

    def __init__(self) -> None:
        self._distance = 0

    def begin(self, info: Info) -> None:
        self._distance = int(info["distance"])

    def gained(self, info: Info) -> int | None:
        before, self._distance = self._distance, int(info["distance"])
        return max(0, self._distance - before)


class RamGround:
    """x from two bytes of the console's RAM, for cores that report none.

    By x alone areas cannot be told apart: after a leap, through a pipe or back in a maze, only
    ground beyond the farthest x of the episode is new.
    """

    def __init__(self, env: EnvProtocol, where: RamX) -> None:
        self._env = env if isinstance(env, MemoryEnv) else None
        self._where = where
        self._walked_pixels = WALKED_PIXELS_PER_FRAME * where.frame_skip
        self._x: int | None = None
        self._farthest = 0

    def begin(self, info: Info) -> None:
        del info
        self._x = self._read()
        self._farthest = self._x or 0

    def gained(self, info: Info) -> int | None:
        del info
        x = self._read()
        if x is None:
            return None
        is_leap = self._x is None or abs(x - self._x) > self._walked_pixels
        gained = 0 if is_leap else max(0, x - self._farthest)
        self._x, self._farthest = x, max(x, self._farthest)
        return gained

    def _read(self) -> int | None:
        if self._env is None:
            return None
        try:
            page = self._env.read_ram(self._where.high_address)
            return page * 0x100 + self._env.read_ram(self._where.low_address)
        except IndexError:
            return None


@dataclass(frozen=True, slots=True)
class Gain:
    """Of one agent step."""

    dx_pixels: int | None
    """New ground; None when it is not known."""
    score: int
    """Points."""


class GainWatch:
    """The gains of one environment, and for how long there was no new ground."""

    def __init__(
        self,
        source: GroundSource | None = None,
        *,
        env_index: int = 0,
        fail_limit: int = FAIL_LIMIT,
    ) -> None:
        """After `fail_limit` failures in a row to read x nobody tries any more."""
        self._source = source or InfoGround()
        self._env_index = env_index
        self._fail_limit = fail_limit
        self._failures_in_a_row = 0
        self._score = 0
        self.failures = 0
        """Agent steps whose x could not be read."""
        self.idle_agent_steps = 0
        """Since there was new ground, over all episodes; those without a known x do not count."""

    def begin(self, info: Info) -> None:
        self._source.begin(info)
        self._score = int(info.get("score", 0))

    def note(self, info: Info) -> Gain:
        """After every agent step."""
        before, self._score = self._score, int(info.get("score", 0))
        dx = self._read(info)
        if dx is not None:
            self.idle_agent_steps = 0 if dx > 0 else self.idle_agent_steps + 1
        # The counter of the game begins again after 999,990; that is no loss.
        return Gain(dx, max(0, self._score - before))

    def _read(self, info: Info) -> int | None:
        if self._failures_in_a_row >= self._fail_limit:
            return None
        dx = self._source.gained(info)
        if dx is not None:
            self._failures_in_a_row = 0
            return dx
        self.failures += 1
        self._failures_in_a_row += 1
        if self._failures_in_a_row == self._fail_limit:
            log.warning(
                "[reward][warn] x cannot be read, distance is shaped no more",
                extra={"env": self._env_index, "failures": self._failures_in_a_row},
            )
        return None
