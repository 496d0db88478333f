"""What the actor's loop needs of an environment; Mario and the corridor both offer it."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from actor.env.scenery import Scenery
from common.phases import PhaseTimer
from common.traces import Trace

InfoValue = int | float | bool | str
Info = dict[str, InfoValue]
"""Plain values only. Always has `x_pos`, `flag_get`, `raw_reward`, and of this episode so far
`frames`, `distance` (pixels of new ground), `loop_backs` and `noop_frames`. Mario also tells
`y_pos` and `area`, the address of the map that he is on."""


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

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], Info]:
        """Begin an episode; the observation is UInt8[stack, height, width], oldest frame first.

        `options={"stage": "1-2"}` begins another stage, where the game has several.
        """
        ...

    def step(self, action: int) -> tuple[NDArray[np.uint8], float, bool, bool, Info]:
        """One agent step: observation, reward, terminated, truncated, info."""
        ...

    def trace(self) -> Trace | None:
        """How to repeat the episode up to its newest agent step; None where a game cannot."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class TimedEnv(Protocol):
    """An environment that can say how long it works on pictures."""

    timer: PhaseTimer


@runtime_checkable
class MemoryEnv(Protocol):
    """An environment whose console's RAM can be looked at."""

    def read_ram(self, address: int) -> int:
        """One byte; raises IndexError where there is no such address."""
        ...


@runtime_checkable
class VisibleEnv(Protocol):
    """An environment that people can look at."""

    @property
    def action_labels(self) -> tuple[str, ...]: ...

    def screen(self) -> NDArray[np.uint8]:
        """The whole screen in colour, RGB UInt8[240, 256, 3]."""
        ...


@runtime_checkable
class SceneryEnv(Protocol):
    """An environment that knows what of its screen belongs to the level."""

    def scenery(self) -> Scenery: ...
