"""What the actor's loop needs of an environment; Mario and the corridor both offer it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

InfoValue = int | float | bool | str
Info = dict[str, InfoValue]
"""Plain values only. Always has `x_pos`, `flag_get`, `raw_reward` and `frames` (this episode)."""


class EnvProtocol(Protocol):
    """A Gymnasium-like environment; every array that it hands out is a copy."""

    @property
    def height(self) -> int: ...

    @property
    def width(self) -> int: ...

    @property
    def stack(self) -> int: ...

    @property
    def num_actions(self) -> int: ...

    @property
    def frame(self) -> NDArray[np.uint8]:
        """The newest frame alone, UInt8[height, width]."""
        ...

    def reset(self, *, seed: int | None = None) -> tuple[NDArray[np.uint8], Info]:
        """Begin an episode; the observation is UInt8[stack, height, width], oldest frame first."""
        ...

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """One agent step: observation, reward, terminated, truncated, info."""
        ...

    def close(self) -> None: ...
