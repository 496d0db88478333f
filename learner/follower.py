"""The loop of a rank above 0: it samples, trains and says that it lives; the rest is rank 0's."""

from __future__ import annotations

from common.heartbeat import HeartbeatWriter
from common.messages import Scalar
from learner.ranked_training import RankedTraining
from learner.team import Team
from learner.training import Steering, Training

FOLLOWS = Steering(learning_rate=0.0, beta=0.0)
"""Nobody looks at what a rank above 0 would like."""


class FollowerLoop:
    """Implements `common.component.Component`."""

    def __init__(
        self, training: RankedTraining, alone: Training, heartbeat: HeartbeatWriter, team: Team
    ) -> None:
        self._training = training
        self._learner = alone.learner
        self._source = alone.source
        self._heartbeat = heartbeat
        self._team = team
        self._first_update = alone.learner.updates
        self._is_waiting = True

    @property
    def is_done(self) -> bool:
        """When rank 0 is, or any other."""
        return self._training.may_end(wants_to=False)

    def waits_for(self) -> str | None:
        return self._source.waits_for() if self._is_waiting else None

    def tick(self) -> bool:
        has_trained = self._training.turn(lambda: FOLLOWS, stops=False)
        self._is_waiting = not has_trained
        if self._heartbeat.due():
            self._beat()
        return has_trained

    def finish(self, deadline_s: float) -> None:
        """Nothing to save; but who leaves early would end rank 0 while it saves."""
        del deadline_s
        self._training.leave()
        self._training.settle()
        self._training.part()

    def close(self) -> None:
        for part in (self._learner, self._source, self._heartbeat, self._team):
            part.close()

    def _beat(self) -> None:
        learner = self._learner
        values: dict[str, Scalar] = {"updates_here": learner.updates - self._first_update}
        values |= self._source.bad_answers()
        shares = learner.timer.shares().items()
        values |= {f"share_{name}": round(share, 4) for name, share in shares}
        waits_for = self.waits_for()
        state = "training" if waits_for is None else f"waiting for {waits_for}"
        self._heartbeat.beat(learner.updates, state, values)
