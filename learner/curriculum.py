"""How often each stage of a run is played: shares that follow what happened in training; pure.

Stages at the edge of what the agent can do get more, mastered ones less, and none is forgotten: a
part of all play, the floor, is spread evenly over the stages that are unlocked.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

CurriculumMode = Literal["uniform", "progress", "manual"]
RECENT_EPISODES: Final = 60
EPISODES_BEFORE_JUDGEMENT: Final = 20
LEARNED_CLEAR_RATE: Final = 0.6
MASTERED_CLEAR_RATE: Final = 0.85
"""In training, where exploring environments lose: a greedy agent then clears nearly always. Between
the two a stage loses its weight little by little, so that shares do not jump."""
_MASTERED_WEIGHT: Final = 0.25
_EDGE_BONUS: Final = 4.0
_MOVEMENT_BONUS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CurriculumPlan:
    stages: tuple[str, ...]
    """In the order in which they are unlocked."""
    mode: CurriculumMode = "progress"
    floor: float = 0.25
    """Share of all play that is spread evenly."""
    unlock_clear_rate: float = 0.0
    """Of the newest stage in training, for the next one to be unlocked; 0: all at once."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """For the mode manual; a stage that is not named has 1."""


@dataclass(slots=True)
class StageRecord:
    """The newest training episodes of a stage."""

    clears: deque[bool] = field(default_factory=lambda: deque(maxlen=RECENT_EPISODES))
    grounds: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT_EPISODES))
    episodes: int = 0
    best_ground: int = 1

    def note(self, *, cleared: bool, ground_pixels: int) -> None:
        self.clears.append(cleared)
        self.grounds.append(ground_pixels)
        self.episodes += 1
        self.best_ground = max(self.best_ground, ground_pixels)

    @property
    def clear_rate(self) -> float:
        return statistics.fmean(self.clears) if self.clears else 0.0

    @property
    def mean_ground(self) -> float:
        return statistics.fmean(self.grounds) if self.grounds else 0.0

    @property
    def movement(self) -> float:
        """How much the ground covered has changed lately, in shares of the most ever."""
        values = list(self.grounds)
        half = len(values) // 2
        if half == 0:
            return 0.0
        change = statistics.fmean(values[half:]) - statistics.fmean(values[:half])
        return min(abs(change) / self.best_ground, 1.0)


class Curriculum:
    """Fed with episodes, asked for shares."""

    def __init__(self, plan: CurriculumPlan) -> None:
        self._plan = plan
        self.records = {stage: StageRecord() for stage in plan.stages}
        self._unlocked = 1 if plan.unlock_clear_rate else len(plan.stages)

    @property
    def unlocked(self) -> Sequence[str]:
        return self._plan.stages[: self._unlocked]

    def note(self, stage: str, *, cleared: bool, ground_pixels: int) -> None:
        """An episode has ended; one of a stage that is not in the plan is ignored."""
        record = self.records.get(stage)
        if record is None:
            return
        record.note(cleared=cleared, ground_pixels=ground_pixels)
        newest = self.records[self.unlocked[-1]]
        is_judged = len(newest.clears) >= EPISODES_BEFORE_JUDGEMENT
        if is_judged and newest.clear_rate >= self._plan.unlock_clear_rate > 0:
            self._unlocked = min(self._unlocked + 1, len(self._plan.stages))

    def shares(self) -> dict[str, float]:
        """Of each unlocked stage; they add up to 1."""
        weights = {stage: self._weight(stage) for stage in self.unlocked}
        floor = self._plan.floor if self._plan.mode == "progress" else 0.0
        total = sum(weights.values())
        even = floor / len(weights)
        return {
            stage: even + (1.0 - floor) * (weight / total if total > 0 else 1.0 / len(weights))
            for stage, weight in weights.items()
        }

    def lines(self) -> list[dict[str, str | int | float]]:
        """What is known of each stage, for people and plots."""
        shares = self.shares()
        return [
            {
                "stage": stage,
                "share": round(shares.get(stage, 0.0), 4),
                "episodes": record.episodes,
                "recent_clear_rate": round(record.clear_rate, 4),
                "recent_ground_mean": round(record.mean_ground, 1),
                "best_ground": record.best_ground if record.episodes else 0,
            }
            for stage, record in self.records.items()
        ]

    def to_state(self) -> dict[str, int]:
        """What a resumed run needs; the recent episodes come again by themselves."""
        return {"unlocked": self._unlocked}

    def restore(self, state: object) -> None:
        unlocked = state.get("unlocked") if isinstance(state, Mapping) else None
        if isinstance(unlocked, int):
            self._unlocked = max(self._unlocked, min(unlocked, len(self._plan.stages)))

    def _weight(self, stage: str) -> float:
        match self._plan.mode:
            case "uniform":
                return 1.0
            case "manual":
                return self._plan.weights.get(stage, 1.0)
            case "progress":
                return hunger(self.records[stage])


def hunger(record: StageRecord) -> float:
    """How much a stage deserves: most where it is cleared half of the time, or where play moves."""
    if len(record.clears) < EPISODES_BEFORE_JUDGEMENT:
        return 1.0
    rate = record.clear_rate
    wanted = 1.0 + _EDGE_BONUS * rate * (1.0 - rate) + _MOVEMENT_BONUS * record.movement
    mastery = (rate - LEARNED_CLEAR_RATE) / (MASTERED_CLEAR_RATE - LEARNED_CLEAR_RATE)
    mastery = min(max(mastery, 0.0), 1.0)
    return (1.0 - mastery) * wanted + mastery * _MASTERED_WEIGHT
