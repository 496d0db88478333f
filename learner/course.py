"""What steers a run besides its settings: which stages are played, and the adapted values."""

from __future__ import annotations

import logging

from common.checkpoint_files import JsonObject
from common.messages import Episode, Scalar
from learner.adaptive import AdaptiveSchedule
from learner.controls import RunControls
from learner.curriculum import Curriculum

log = logging.getLogger(__name__)


class Course:
    """Follows the episodes of training; checkpoints keep it."""

    def __init__(
        self,
        curriculum: Curriculum,
        controls: RunControls,
        schedule: AdaptiveSchedule | None = None,
    ) -> None:
        self.curriculum = curriculum
        self.controls = controls
        self._schedule = schedule
        if schedule is not None:
            schedule.confine(controls)

    def note(self, episode: Episode) -> None:
        """Half a stage says nothing about how well a whole one is played."""
        if not episode.from_start:
            return
        self.curriculum.note(episode.stage, cleared=episode.cleared, ground_pixels=episode.ground)
        if self._schedule is not None:
            self._schedule.note(episode)

    def follow(self, agent_steps: int) -> None:
        """Adapt the controls if it is time."""
        if self._schedule is None:
            return
        decision = self._schedule.follow(agent_steps, self.controls)
        if decision is not None and decision.has_changed:
            extra = {
                "agent_steps": agent_steps,
                "forward_ratio": round(decision.forward_ratio, 4),
                "estimated": decision.is_estimated,
                "mean_return": round(decision.mean_return, 4),
                **self.controls.to_state(),
                "revision": self.controls.play.revision,
            }
            log.info("adapted", extra=extra)

    def metrics(self) -> dict[str, Scalar]:
        """The values in force, adapted or not."""
        is_estimated = None if self._schedule is None else self._schedule.is_estimated
        return {
            "adaptive_distance_weight_effective": self.controls.play.distance_weight,
            "adaptive_exploration_scale": self.controls.play.exploration_scale,
            "adaptive_lr_scale": self.controls.lr_scale,
            "adaptive_ratio_fallback": None if is_estimated is None else int(is_estimated),
        }

    def to_state(self) -> JsonObject:
        return {
            "curriculum": self.curriculum.to_state(),
            "controls": self.controls.to_state(),
            "adaptive": {} if self._schedule is None else self._schedule.to_state(),
        }

    def restore(self, run: JsonObject) -> None:
        """Take over what a checkpoint says.

        Adapted values are for a schedule that goes on; without one the settings count, which may
        have been changed on purpose.
        """
        self.curriculum.restore(run.get("curriculum"))
        if self._schedule is None:
            return
        controls, adaptive = run.get("controls"), run.get("adaptive")
        self.controls.restore(controls if isinstance(controls, dict) else {})
        self._schedule.restore(adaptive if isinstance(adaptive, dict) else {})
        self._schedule.confine(self.controls)
