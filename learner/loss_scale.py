"""What losses in float16 are multiplied by, so that small gradients do not become zero.

The rule is that of torch's `GradScaler`, which would read and write all gradients twice more per
update, in every precision; the host knows how an update went anyhow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GROWTH_INTERVAL_UPDATES = 2_000
"""So many updates in a row without an overflow double the scale; an overflow halves it."""
FLOAT16_SCALE = 2.0**16


@dataclass(slots=True)
class LossScale:
    factor: float = 1.0
    is_fixed: bool = True
    """In precisions with the range of float32 there is nothing to find."""
    good_updates: int = 0
    """In a row, since the scale was changed."""

    @classmethod
    def for_float16(cls) -> LossScale:
        return cls(factor=FLOAT16_SCALE, is_fixed=False)

    def learn(self, *, finite: bool) -> None:
        """After an update."""
        if self.is_fixed:
            return
        self.good_updates = self.good_updates + 1 if finite else 0
        if not finite:
            self.factor /= 2.0
        elif self.good_updates == GROWTH_INTERVAL_UPDATES:
            self.factor *= 2.0
            self.good_updates = 0

    def state(self) -> dict[str, float] | None:
        """For a checkpoint, with the names of `GradScaler`, which earlier versions wrote."""
        if self.is_fixed:
            return None
        return {"scale": self.factor, "_growth_tracker": self.good_updates}

    def restore(self, state: Any) -> None:
        """Nothing where a run has changed its precision.

        Raises KeyError, TypeError, ValueError or OverflowError.
        """
        if self.is_fixed or state is None:
            return
        factor, good_updates = float(state["scale"]), int(state["_growth_tracker"])
        if not 0.0 < factor < float("inf") or good_updates < 0:
            raise ValueError(f"a loss scale of {factor} after {good_updates} updates")
        self.factor, self.good_updates = factor, good_updates
