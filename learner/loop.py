"""The learner's loop: take a batch, train, send priorities back, publish, save, report.

Terms. An *update* is one gradient step; a *version* of the weights is the number of updates that
made them; *agent steps* are those of the whole run, as the replay servers have counted them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from common.checkpoint_files import JsonObject
from common.errors import MarioError, RanksLost, UpdatesNotFinite
from learner.archive import Archive
from learner.inbox import episode_line
from learner.parts import LearnerParts, LearnerPlan
from learner.publisher import News
from learner.ranked_training import RankedTraining
from learner.reporter import Reporter
from learner.training import Steering, Training
from learner.update import Learner

SECONDS_PER_MINUTE = 60.0


class LearnerLoop:
    """Implements `common.component.Component`."""

    def __init__(self, parts: LearnerParts, plan: LearnerPlan) -> None:
        self._parts = parts
        self._plan = plan
        self._learner = parts.learner
        self._source = parts.source
        self._course = parts.course
        self._progress = parts.progress
        self._timer = parts.learner.timer
        self._reporter = Reporter(parts, plan)
        self._training: Training | RankedTraining = Training(
            parts.learner,
            parts.source,
            uses=plan.uses,
            tell=self._reporter.add,
            works_meanwhile=plan.is_overlapped,
        )
        if parts.team is not None:
            self._training = RankedTraining(self._training, parts.team)
        self._is_waiting = True
        self._started_s = time.monotonic()
        self.saved: Path | None = None
        """The checkpoint written last in this life while all waited for it."""
        self.after_cut_request: Callable[[], object] = lambda: None
        """In lockstep the replay server answers before the checkpoint is written."""
        self._publish()

    @property
    def is_done(self) -> bool:
        """Whether a budget is used up, or somebody asked for the end; of ranks, all of them."""
        return self._training.may_end(wants_to=self._is_out())

    def _is_out(self) -> bool:
        minutes = (time.monotonic() - self._started_s) / SECONDS_PER_MINUTE
        limits = self._plan
        out_of_steps = 0 < limits.max_agent_steps <= self._progress.agent_steps
        out_of_updates = 0 < limits.max_updates <= self._learner.updates
        is_out = out_of_steps or out_of_updates or 0 < limits.max_minutes <= minutes
        return is_out or self._parts.desk.orders.stop_wanted

    def waits_for(self) -> str | None:
        return self._source.waits_for() if self._is_waiting else None

    def tick(self) -> bool:
        """Train on one batch if there is one, then look after everything else that is due."""
        try:
            has_trained = self._training.turn(
                self._steer, stops=self._is_out(), meanwhile=self._listen
            )
        except (RanksLost, UpdatesNotFinite):
            # The weights are those after the last whole update: nothing of it need be lost.
            self.save()
            raise
        self._is_waiting = not has_trained
        self._look_after()
        return has_trained

    def finish(self, deadline_s: float) -> None:
        """Save; an unfinished batch is worth less than a clean end."""
        del deadline_s
        self._training.leave()
        self._training.settle()
        self._listen()
        self._reporter.write_line()
        if not self.save():
            raise MarioError("the last checkpoint could not be written; free some space, resume")
        self._training.part()

    def save(self) -> bool:
        """False when the checkpoint could not be written; the older ones still stand."""
        archive = self._parts.archive
        if archive is None:
            return True
        self.saved = archive.save(*self._cut(archive))
        return self.saved is not None

    def close(self) -> None:
        if self._parts.archive is not None:
            self._parts.archive.close()
        parts = self._parts
        # Before the source: a second thread may be reading one of its batches.
        self._learner.close()
        for part in (self._source, parts.publisher, parts.inbox, parts.desk, parts.heartbeat):
            part.close()
        for file in (parts.metrics, parts.episodes, parts.stages):
            if file is not None:
                file.close()
        for helper in (self._parts.gpus, self._parts.board, self._parts.team):
            if helper is not None:
                helper.close()

    def _listen(self) -> None:
        with self._timer.phase("logging"):
            self._parts.desk.pump()
            for episode in self._parts.inbox.pump():
                self._course.note(episode)
                if self._parts.episodes is not None and episode.from_start:
                    self._parts.episodes.write(episode_line(episode, self._progress.agent_steps))
            self._course.follow(self._progress.agent_steps)
        with self._timer.phase("publish"):
            self._parts.publisher.pump()

    def _steer(self) -> Steering:
        steps = self._progress.agent_steps
        return Steering(
            learning_rate=self._plan.learning_rate_at(steps, self._course),
            beta=self._plan.beta.at(steps),
        )

    def _publish(self) -> None:
        with self._timer.phase("publish"):
            news = News(
                agent_steps=self._progress.agent_steps,
                stage_shares=self._course.curriculum.shares(),
                controls=self._course.controls.play,
            )
            self._parts.publisher.publish(self._learner.online, self._learner.updates, news)

    def _save_in_passing(self, archive: Archive) -> None:
        if self._plan.is_overlapped:
            archive.begin(*self._cut(archive))
        else:
            self.save()

    def _cut(self, archive: Archive) -> tuple[Learner, int, JsonObject]:
        """What is saved now, and the replay with it."""
        agent_steps = self._progress.agent_steps
        saves_replay = self._plan.saves_replay and not archive.has(agent_steps)
        if saves_replay:
            self._training.settle()
        run: JsonObject = {
            "progress": self._progress.to_state(),
            **self._course.to_state(),
        }
        if saves_replay:
            self._source.request_cut(agent_steps)
            self.after_cut_request()
        return self._learner, agent_steps, run

    def _look_after(self) -> None:
        if self._parts.publisher.is_due(self._learner.updates, self._course.controls.play):
            self._publish()
        with self._timer.phase("logging"):
            self._reporter.tell_what_is_due(self.waits_for())
        archive = self._parts.archive
        orders, steps = self._parts.desk.orders, self._progress.agent_steps
        if archive is not None and archive.due(steps, is_wanted=orders.save_wanted):
            orders.save_wanted = False
            with self._timer.phase("checkpoint"):
                self._save_in_passing(archive)
