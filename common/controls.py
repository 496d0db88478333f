"""What the learner tells the actors besides weights while a run goes on.

Every change has a new revision; an actor's heartbeat says which one it plays with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from common.messages import Count, Range

MAX_DISTANCE_WEIGHT = 100.0
MAX_EXPLORATION_SCALE = 100.0
MAX_LR_SCALE = 100.0
MAX_ENVIRONMENTS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayControls:
    """In force from the moment an actor has it; defaults change nothing."""

    revision: Count = 0
    """Counts the changes in this life of the learner."""
    distance_weight: Annotated[float, Range(0, MAX_DISTANCE_WEIGHT)] = 0.0
    """Of shaped rewards, per pixel of progress."""
    exploration_scale: Annotated[float, Range(0, MAX_EXPLORATION_SCALE)] = 1.0
    """Factor on the epsilon ladder; an epsilon stays at most 1."""
    environments: Annotated[int, Range(0, MAX_ENVIRONMENTS)] = 0
    """Over which the epsilon ladder is laid now; 0: as many as an actor's own settings say."""
