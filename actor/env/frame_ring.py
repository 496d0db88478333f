"""The newest frames of an episode, and the observations made of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_RING_STACKS = 32


class FrameRing:
    """The newest frames of one episode, each stored once, always contiguous in memory.

    The storage is many stacks long; only when its end is reached are the few frames that are
    still needed moved to its beginning.
    """

    def __init__(self, stack: int, height: int, width: int) -> None:
        self._stack = stack
        self._frames = np.zeros((stack * _RING_STACKS, height, width), dtype=np.uint8)
        self._newest = stack - 1

    def next_slot(self) -> NDArray[np.uint8]:
        """The place for the next frame; the caller fills it before anything else is read."""
        if self._newest + 1 == len(self._frames):
            kept = self._stack - 1
            self._frames[:kept] = self._frames[len(self._frames) - kept :]
            self._newest = kept - 1
        self._newest += 1
        slot: NDArray[np.uint8] = self._frames[self._newest]
        return slot

    def repeat_newest(self) -> None:
        """Begin an episode: the newest frame becomes its first, seen in all places of the stack."""
        first = self.newest()
        self._frames[: self._stack] = first
        self._newest = self._stack - 1

    def begin_with(self, observation: NDArray[np.uint8]) -> None:
        """Begin in the middle of an episode, with the frames that were seen there."""
        self._frames[: self._stack] = observation
        self._newest = self._stack - 1

    def observation(self) -> NDArray[np.uint8]:
        return self._frames[self._newest + 1 - self._stack : self._newest + 1].copy()

    def newest(self) -> NDArray[np.uint8]:
        frame: NDArray[np.uint8] = self._frames[self._newest].copy()
        return frame
