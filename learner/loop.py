"""The learner's loop: take a batch, train, send priorities back, publish, save, report.

Terms. An *update* is one gradient step; a *version* of the weights is the number of updates that
made them; *agent steps* are those of the whole run, as the replay servers have counted them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import torch

from common.batch import Batch
from common.checkpoint_files import JsonObject
from common.errors import MarioError
from common.messages import Scalar
from common.nvml import Reading
from learner.archive import Archive
from learner.batch_source import ReadyBatch
from learner.parts import LearnerParts, LearnerPlan
from learner.publisher import News
from learner.report import (
    GpuWindow,
    IntervalSums,
    RateMeter,
    mean_or_none,
    metrics_line,
    phase_metrics,
    wait_metrics,
    weight_lag,
)
from learner.update import Learner

log = logging.getLogger(__name__)

WAIT_MS = 50
MAX_SKIPPED_IN_A_ROW = 10
LOST_AFTER_INTERVALS = 3
SECONDS_PER_MINUTE = 60.0


class LearnerLoop:
    """Implements `common.component.Component`."""

    def __init__(self, parts: LearnerParts, plan: LearnerPlan) -> None:
        self._parts = parts
        self._plan = plan
        self._learner = parts.learner
        self._source = parts.source
        self._progress = parts.progress
        self._timer = parts.learner.timer
        self._sums = IntervalSums()
        self._shares: dict[str, float] = {}
        """Of the last interval that was reported."""
        self._rates = RateMeter()
        self._gpu_window = GpuWindow()
        self._is_waiting = True
        self._first_update = parts.learner.updates
        self._has_told = False
        self._started_s = time.monotonic()
        self._reported_s = self._started_s
        self.saved: Path | None = None
        """The checkpoint written last in this life while all waited for it."""
        self.after_cut_request: Callable[[], object] = lambda: None
        """In lockstep the replay server answers before the checkpoint is written."""
        self._publish()

    @property
    def is_done(self) -> bool:
        """Whether a budget is used up, or somebody asked for the end."""
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
        with self._timer.phase("logging"):
            self._listen()
        with self._timer.phase("publish"):
            self._parts.publisher.pump()
        with self._timer.phase("wait"):
            ready = self._source.next(WAIT_MS)
        if ready is not None:
            self._train(ready)
        self._is_waiting = ready is None
        self._look_after()
        return ready is not None

    def finish(self, deadline_s: float) -> None:
        """Save; an unfinished batch is worth less than a clean end."""
        del deadline_s
        self._listen()
        self._report()
        if not self.save():
            raise MarioError("the last checkpoint could not be written; free some space, resume")

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
        for part in (self._source, parts.publisher, parts.inbox, parts.desk, parts.heartbeat):
            part.close()
        for file in (self._parts.metrics, self._parts.stages):
            if file is not None:
                file.close()
        if self._parts.gpus is not None:
            self._parts.gpus.close()

    def _listen(self) -> None:
        self._parts.desk.pump()
        for episode in self._parts.inbox.pump():
            if not episode.from_start:
                continue
            self._parts.curriculum.note(
                episode.stage, cleared=episode.cleared, ground_pixels=episode.ground
            )

    def _train(self, ready: ReadyBatch) -> None:
        steps = self._progress.agent_steps
        self._learner.set_learning_rate(self._learning_rate(steps))
        self._source.beta = self._plan.beta.at(steps)
        with self._timer.phase("copy"):
            batch = _on_device(ready.batch, self._learner.device)
        for _ in range(self._plan.uses):
            result = self._learner.update(batch)
            self._sums.add(result)
            self._check_finite()
        with self._timer.phase("priorities"):
            if result.finite:
                self._source.send_priorities(ready, result.priorities)
            self._source.release(ready)

    def _learning_rate(self, agent_steps: int) -> float:
        return self._plan.learning_rate.at(agent_steps) * self._parts.controls.lr_scale

    def _check_finite(self) -> None:
        if self._learner.consecutive_skipped_updates >= MAX_SKIPPED_IN_A_ROW:
            self.save()
            raise MarioError(
                f"{MAX_SKIPPED_IN_A_ROW} updates in a row were not finite; the last good state "
                "is saved; resume with a lower --learning-rate"
            )

    def _publish(self) -> None:
        with self._timer.phase("publish"):
            news = News(
                agent_steps=self._progress.agent_steps,
                stage_shares=self._parts.curriculum.shares(),
                controls=self._parts.controls.play,
            )
            self._parts.publisher.publish(self._learner.online, self._learner.updates, news)

    def _save_in_passing(self, archive: Archive) -> None:
        if self._plan.saves_beside:
            archive.begin(*self._cut(archive))
        else:
            self.save()

    def _cut(self, archive: Archive) -> tuple[Learner, int, JsonObject]:
        """What is saved now, and the replay with it."""
        run: JsonObject = {
            "progress": self._progress.to_state(),
            "curriculum": self._parts.curriculum.to_state(),
            "controls": self._parts.controls.to_state(),
        }
        agent_steps = self._progress.agent_steps
        if self._plan.saves_replay and not archive.has(agent_steps):
            self._source.request_cut(agent_steps)
            self.after_cut_request()
        return self._learner, agent_steps, run

    def _look_after(self) -> None:
        if self._parts.publisher.is_due(self._learner.updates, self._parts.controls.play):
            self._publish()
        with self._timer.phase("logging"):
            if time.monotonic() - self._reported_s >= self._plan.metrics_interval_s:
                self._report()
            if self._parts.heartbeat.due() or self._has_news():
                self._beat()
        archive = self._parts.archive
        orders, steps = self._parts.desk.orders, self._progress.agent_steps
        if archive is not None and archive.due(steps, is_wanted=orders.save_wanted):
            orders.save_wanted = False
            with self._timer.phase("checkpoint"):
                self._save_in_passing(archive)

    def _has_news(self) -> bool:
        """The first update: the launcher asks for it when this life ends."""
        is_news = self._learner.updates > self._first_update and not self._has_told
        self._has_told = self._has_told or is_news
        return is_news

    def _beat(self) -> None:
        readings, error = self._parts.gpus.last() if self._parts.gpus else (None, "not watched")
        count = None if readings is None else len(readings)
        values: dict[str, Scalar] = {"gpu_error": error, "gpu_count": count}
        values["updates_here"] = self._learner.updates - self._first_update
        values["control_bad"] = self._parts.desk.bad
        values |= self._source.bad_answers()
        values |= self._told_shares()
        for gpu in readings or []:
            values.update({f"gpu{gpu['index']}_{name}": value for name, value in gpu.items()})
        if self._parts.archive is not None:
            values["checkpoint_error"] = self._parts.archive.last_error
        waits_for = self.waits_for()
        state = "training" if waits_for is None else f"waiting for {waits_for}"
        record = self._parts.heartbeat.beat(self._learner.updates, state, values)
        self._parts.inbox.note_heartbeat("learner-0", record)

    def _report(self) -> None:
        """One line of metrics.jsonl; the replay server's part is at most one interval old."""
        self._reported_s = time.monotonic()
        line = metrics_line({**self._own_metrics(), **self._others_metrics()})
        self._sums = IntervalSums()
        self._source.ask_stats()
        if self._parts.metrics is not None:
            self._parts.metrics.write(line)
        if self._parts.stages is not None:
            when = {"time": line["time"], "global_step": line["global_step"]}
            for stage in self._parts.curriculum.lines():
                self._parts.stages.write({**when, **stage})

    def _own_metrics(self) -> dict[str, Scalar]:
        learner, steps = self._learner, self._progress.agent_steps
        rates = self._rates.rates({"steps": steps, "updates": learner.updates})
        return {
            "time": time.time(),
            "run_time_s": round(time.monotonic() - self._started_s, 3),
            "global_step": steps,
            "updates": learner.updates,
            "env_steps_per_sec": round(rates["steps"], 2),
            "updates_per_sec": round(rates["updates"], 2),
            "loss_total": mean_or_none(self._sums.losses),
            "q_mean": mean_or_none(self._sums.q_means),
            "grad_norm": mean_or_none(self._sums.grad_norms),
            "learning_rate": self._learning_rate(steps),
            "per_beta": self._plan.beta.at(steps),
            "skipped_updates_total": learner.skipped_updates,
            "model_compiled": learner.model_compiled,
            "weight_version": self._parts.publisher.version,
            "telemetry_bad_total": self._parts.inbox.bad,
            **self._gpu_window.metrics(self._first_gpu()),
        }

    def _others_metrics(self) -> dict[str, Scalar]:
        inbox, max_age_s = self._parts.inbox, LOST_AFTER_INTERVALS * self._plan.metrics_interval_s
        actors = inbox.beats_of("actor", max_age_s)
        replay = (inbox.beats_of("replay_server", max_age_s) or [{}])[0]
        self._shares = self._timer.shares()
        wait_share = self._shares.get("wait", 0.0)
        return {
            **inbox.take_metrics(),
            **self._source.stats,
            "actors_alive": len(actors),
            "weight_lag_updates": weight_lag(self._learner.updates, actors),
            **wait_metrics(wait_share, actors, replay),
            **phase_metrics("actors", actors),
            **phase_metrics("replay", [replay] if replay else []),
            **phase_metrics("learner", [self._told_shares()]),
        }

    def _told_shares(self) -> dict[str, Scalar]:
        return {f"share_{name}": round(share, 4) for name, share in self._shares.items()}

    def _first_gpu(self) -> Reading | None:
        readings, _ = self._parts.gpus.last() if self._parts.gpus else (None, None)
        return readings[0] if readings else None


def _on_device(batch: Batch, device: torch.device) -> Batch:
    """Where the device is the CPU this copies nothing: the slot itself is trained on."""
    moved = {name: getattr(batch, name).to(device) for name in Batch.__slots__}
    return Batch(**moved)
