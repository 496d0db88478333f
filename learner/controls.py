"""What may be changed while a run goes on, by a schedule or by a person; kept in checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from common.controls import MAX_DISTANCE_WEIGHT, MAX_EXPLORATION_SCALE, PlayControls

MOST = {
    "distance_weight": MAX_DISTANCE_WEIGHT,
    "exploration_scale": MAX_EXPLORATION_SCALE,
    "lr_scale": MAX_EXPLORATION_SCALE,
}


class RunControls:
    """The values in force. Every change that actors must know of has a new revision."""

    def __init__(self, *, distance_weight: float = 0.0, environments: int = 0) -> None:
        """`environments` are those of this start: a checkpoint does not know who plays now."""
        self.play = PlayControls(distance_weight=distance_weight, environments=environments)
        self.lr_scale = 1.0
        """Factor on the learning rate."""

    def change(
        self,
        *,
        distance_weight: float | None = None,
        exploration_scale: float | None = None,
        lr_scale: float | None = None,
    ) -> bool:
        """Set what is given; True when something is different now."""
        before = (self.play, self.lr_scale)
        if lr_scale is not None:
            self.lr_scale = lr_scale
        play = self.play
        changed = replace(
            play,
            distance_weight=play.distance_weight if distance_weight is None else distance_weight,
            exploration_scale=(
                play.exploration_scale if exploration_scale is None else exploration_scale
            ),
        )
        if changed != self.play:
            self.play = replace(changed, revision=self.play.revision + 1)
        return before != (self.play, self.lr_scale)

    def note_environments(self, number: int) -> None:
        """So many play from now on."""
        if number != self.play.environments:
            revision = self.play.revision + 1
            self.play = replace(self.play, environments=number, revision=revision)

    def to_state(self) -> dict[str, float]:
        return {
            "distance_weight": self.play.distance_weight,
            "exploration_scale": self.play.exploration_scale,
            "lr_scale": self.lr_scale,
        }

    def restore(self, state: Mapping[str, object]) -> None:
        """Take over what a checkpoint says; what it does not know stays."""
        known = {name: float(str(state[name])) for name in MOST if name in state}
        for name, value in known.items():
            if not 0 <= value <= MOST[name]:
                raise ValueError(f"{name} must be between 0 and {MOST[name]}, got {value}")
        self.change(**known)
