"""Shaped rewards: raw = score weight x points + distance weight x pixels, times a scale.

Added to the environment's own reward in training only; what episodes report as their return is
without it. Pure arithmetic, and the sums that heartbeats tell.
"""

from __future__ import annotations

from dataclasses import dataclass

from actor.gains import Gain
from common.blocks import MAX_ABS_REWARD
from common.linear_schedule import LinearSchedule
from common.messages import Scalar

DIGITS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapingPlan:
    """What the settings say; the distance weight comes from the learner."""

    score_weight: float = 0.0
    scale_start: float = 1.0
    scale_final: float = 1.0
    anneal_agent_steps: int = 0

    def scale_at(self, agent_steps: int) -> float:
        """Linear in the agent steps of the whole run, then constant."""
        return LinearSchedule(
            start=self.scale_start, end=self.scale_final, duration=self.anneal_agent_steps
        ).at(agent_steps)


class Shaping:
    """What is in force for all environments of an actor; off while both weights are 0."""

    def __init__(self, plan: ShapingPlan | None = None) -> None:
        self._plan = plan or ShapingPlan()
        self._distance_weight = 0.0
        self._scale = self._plan.scale_at(0)
        self._raw_sum = 0.0
        self._scaled_sum = 0.0
        self._last = (0.0, 0.0, 0)

    def follow(self, agent_steps: int, distance_weight: float) -> None:
        """What the newest weights say: agent steps of the run, pixels' worth."""
        self._scale = self._plan.scale_at(agent_steps)
        self._distance_weight = distance_weight

    @property
    def is_on(self) -> bool:
        return self._distance_weight != 0 or self._plan.score_weight != 0

    def add(self, reward: float, gain: Gain) -> float:
        """The reward to learn from, within what a block may hold."""
        if not self.is_on:
            return reward
        dx = gain.dx_pixels or 0
        raw = self._plan.score_weight * gain.score + self._distance_weight * dx
        scaled = raw * self._scale
        self._raw_sum += raw
        self._scaled_sum += scaled
        self._last = (raw, scaled, dx)
        return min(max(reward + scaled, -MAX_ABS_REWARD), MAX_ABS_REWARD)

    def figures(self) -> dict[str, Scalar]:
        """For a heartbeat: sums over this life of the actor, and its newest agent step."""
        raw, scaled, dx = self._last
        return {
            "shaping_raw_sum": round(self._raw_sum, DIGITS),
            "shaping_scaled_sum": round(self._scaled_sum, DIGITS),
            "shaping_last_raw": round(raw, DIGITS),
            "shaping_last_scaled": round(scaled, DIGITS),
            "shaping_last_dx": dx,
            "shaping_last_scale": round(self._scale, DIGITS),
        }
