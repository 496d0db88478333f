"""Tells how training goes: lines of metrics.jsonl and stages.jsonl, and the learner's heartbeat."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

from common.messages import Scalar
from common.nvml import Reading
from common.phases import gap_share
from learner.parts import LearnerParts, LearnerPlan
from learner.play_report import Beat, count_acknowledged, play_metrics
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
from learner.update import UpdateResult

log = logging.getLogger(__name__)

LOST_AFTER_INTERVALS = 3


class Reporter:
    """Reads the parts of a learner and changes none of them."""

    def __init__(self, parts: LearnerParts, plan: LearnerPlan) -> None:
        self._parts = parts
        self._plan = plan
        self._learner = parts.learner
        self._progress = parts.progress
        self._timer = parts.learner.timer
        self._sums = IntervalSums()
        self._shares: dict[str, float] = {}
        """Of the last interval that was reported."""
        self._rates = RateMeter()
        self._gpu_window = GpuWindow()
        self._told_revision = 0
        """Of the controls, that all actors were last seen to play with."""
        self._first_update = parts.learner.updates
        self._has_told = False
        self._started_s = time.monotonic()
        self._reported_s = self._started_s

    def add(self, result: UpdateResult) -> None:
        self._sums.add(result)

    def tell_what_is_due(self, waits_for: str | None) -> None:
        if time.monotonic() - self._reported_s >= self._plan.metrics_interval_s:
            self.write_line()
        if self._parts.heartbeat.due() or self._has_news():
            self._beat(waits_for)

    def write_line(self) -> None:
        """One line of metrics.jsonl; the replay server's part is at most one interval old."""
        self._reported_s = time.monotonic()
        line = metrics_line({**self._own_metrics(), **self._others_metrics()})
        self._sums = IntervalSums()
        self._parts.source.ask_stats()
        if self._parts.metrics is not None:
            self._parts.metrics.write(line)
        if self._parts.board is not None:
            self._parts.board.write(line)
        if self._parts.stages is not None:
            when = {"time": line["time"], "global_step": line["global_step"]}
            for stage in self._parts.course.curriculum.lines():
                self._parts.stages.write({**when, **stage})

    def _has_news(self) -> bool:
        """The first update: the launcher asks for it when this life ends."""
        is_news = self._learner.updates > self._first_update and not self._has_told
        self._has_told = self._has_told or is_news
        return is_news

    def _beat(self, waits_for: str | None) -> None:
        readings, error = self._parts.gpus.last() if self._parts.gpus else (None, "not watched")
        count = None if readings is None else len(readings)
        values: dict[str, Scalar] = {"gpu_error": error, "gpu_count": count}
        values["updates_here"] = self._learner.updates - self._first_update
        values["control_bad"] = self._parts.desk.bad
        values["subscriptions_bad"] = self._parts.publisher.odd_events
        values |= self._parts.source.bad_answers()
        values |= self._parts.inbox.bad.told_as("telemetry_bad")
        values |= self._told_shares()
        for gpu in readings or []:
            values.update({f"gpu{gpu['index']}_{name}": value for name, value in gpu.items()})
        if self._parts.archive is not None:
            values["checkpoint_error"] = self._parts.archive.last_error
        state = "training" if waits_for is None else f"waiting for {waits_for}"
        record = self._parts.heartbeat.beat(self._learner.updates, state, values)
        self._parts.inbox.note_heartbeat("learner-0", record)

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
            "learning_rate": self._plan.learning_rate_at(steps, self._parts.course),
            "per_beta": self._plan.beta.at(steps),
            "skipped_updates_total": learner.skipped_updates,
            "model_compiled": learner.model_compiled,
            "weight_version": self._parts.publisher.version,
            "telemetry_bad_total": self._parts.inbox.bad.total,
            **self._gpu_window.metrics(self._first_gpu()),
        }

    def _others_metrics(self) -> dict[str, Scalar]:
        inbox, max_age_s = self._parts.inbox, LOST_AFTER_INTERVALS * self._plan.metrics_interval_s
        actors = inbox.beats_of("actor", max_age_s)
        servers = inbox.beats_of("replay_server", max_age_s)
        self._shares = self._timer.shares()
        wait_share = self._shares.get("wait", 0.0)
        return {
            **inbox.take_metrics(),
            **play_metrics(self._progress.play, actors),
            **self._parts.source.stats,
            **self._parts.course.metrics(),
            "actors_alive": len(actors),
            "controls_acked": self._count_acknowledged(actors),
            "weight_lag_updates": weight_lag(self._learner.updates, actors),
            **wait_metrics(wait_share, actors, servers),
            **phase_metrics("actors", actors),
            **phase_metrics("replay", servers),
            **phase_metrics("learner", [self._told_shares()]),
            "gap_share_learner": round(gap_share(self._shares), 4),
        }

    def _count_acknowledged(self, actors: Sequence[Beat]) -> int:
        """Who plays with the newest controls; the log says when it is everybody."""
        controls = self._parts.course.controls.play
        acked = count_acknowledged(actors, controls, self._parts.publisher.generation)
        if 0 < acked == len(actors) and controls.revision != self._told_revision:
            self._told_revision = controls.revision
            extra = {"revision": controls.revision, "actors": acked}
            log.info("all actors play with the newest controls", extra=extra)
        return acked

    def _told_shares(self) -> dict[str, Scalar]:
        return {f"share_{name}": round(share, 4) for name, share in self._shares.items()}

    def _first_gpu(self) -> Reading | None:
        readings, _ = self._parts.gpus.last() if self._parts.gpus else (None, None)
        return readings[0] if readings else None
