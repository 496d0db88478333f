"""A part of the benchmark `learner`: the gaps between the updates of a real learner process.

It is fed by a real replay server that always has data, into which steps come as fast as actors play
and with their priority; eight listeners take its weights and send it heartbeats and episodes. It
tells of its time in metrics.jsonl: each line is about the time since the line before it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise

from common.config import ActorSettings, EnvSettings, LearnerSettings, ReplaySettings, Settings
from common.devices import learner_thread_count
from common.errors import BenchmarkFailed
from common.jsonl import last_record, read_jsonl
from common.phases import PHASES, UPDATE_PHASES
from launch.benchmarks.arithmetic import PRECISIONS, Precision
from launch.benchmarks.measure import Row, against_first, figure
from launch.benchmarks.replay_plan import NO_BALANCE_AGENT_STEPS
from launch.benchmarks.runs import count_updates, number, with_other
from launch.benchmarks.scene import Scene, Talker, open_scene

GAPS = (*(phase for phase in PHASES["learner"] if phase not in UPDATE_PHASES), "other")
"""All but the update itself, claimed by a phase or not."""
START_DEADLINE_S = 120.0
LISTENERS = 8
NO_MILESTONE_AGENT_STEPS = 1_000_000_000
Lines = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GapPlan:
    precision: Precision = "off"
    seconds: float = 60.0
    """That the learner process is watched."""
    env: EnvSettings = field(default_factory=EnvSettings)
    """Whose observations it trains on."""

    @property
    def settings(self) -> Settings:
        """Learning never waits for play, and between two lines there is at most one checkpoint.

        Lines come as often as in a run, for each of them is a gap of its own.
        """
        base = Settings()
        interval_s = min(base.run.metrics_interval_s, self.seconds / 4)
        return replace(
            base,
            run=replace(base.run, device="cpu", metrics_interval_s=interval_s),
            env=self.env,
            actor=ActorSettings(actors=1),
            replay=ReplaySettings(
                capacity=10_000,
                learning_starts=1_000,
                balance_slack_agent_steps=NO_BALANCE_AGENT_STEPS,
            ),
            learner=LearnerSettings(
                mixed_precision=self.precision,
                checkpoint_interval_s=2 * interval_s,
                keep_checkpoints=1_000,
            ),
            evaluation=replace(base.evaluation, eval_interval_agent_steps=NO_MILESTONE_AGENT_STEPS),
        )


def gap_rows(plan: GapPlan) -> list[Row]:
    """Shares of the time of a learner process that has all the data it wants."""
    settings = plan.settings
    with open_scene(settings) as scene:
        scene.start_program("replay_server")
        threads = learner_thread_count(settings.learner.learner_threads)
        scene.start_program("learner", "--resume", "none", threads=threads)
        job = {
            "config": str(scene.paths.config),
            "niceness": import_module("actor.main").ACTOR_NICENESS,
        }
        _start_listeners(scene, job)
        sender = Talker(scene, "sender-0", "launch.benchmarks.sender", {**job, "index": 0})
        sender.tell({"seconds": START_DEADLINE_S + plan.seconds, "agent_steps_per_s": 1_000})
        has_learned = "the first update"
        scene.wait_until(has_learned, lambda: count_updates(scene.paths) > 0, START_DEADLINE_S)
        intervals = max(round(plan.seconds / settings.run.metrics_interval_s), 2)
        deadline_s = 3 * plan.seconds + START_DEADLINE_S
        scene.wait_until("metrics", lambda: len(_lines(scene)) > intervals, deadline_s)
        return rows_of(_lines(scene), PRECISIONS[plan.precision])


def _start_listeners(scene: Scene, job: Mapping[str, object]) -> None:
    """All have been heard before there is anything to learn from."""
    words = ["-m", "launch.benchmarks.listeners", json.dumps({**job, "actors": LISTENERS})]
    scene.start("listeners", words)

    def are_heard() -> bool:
        return number(last_record(scene.paths.metrics) or {}, "actors_alive") >= LISTENERS

    scene.wait_until("the listeners", are_heard, START_DEADLINE_S)


def _lines(scene: Scene) -> Lines:
    """From the first update on: the line that tells of it is about time before it, too."""
    return [line for line in read_jsonl(scene.paths.metrics) if number(line, "updates") > 0]


def rows_of(lines: Lines, name: str) -> list[Row]:
    """Of the intervals between lines; the first line only tells when the first of them began."""
    if len(lines) < 2:  # noqa: PLR2004 - an interval has two ends
        raise BenchmarkFailed("the learner told nothing of its time")
    shares = _shares(lines[1:])
    gaps = {phase: shares[phase] for phase in GAPS}
    together = [number(line, "gap_share_learner") for line in lines[1:]]
    return [
        *(figure(f"gap: {phase}, {name}", values, "ratio") for phase, values in gaps.items()),
        figure(f"gaps together, {name}", together, "ratio"),
        *_checkpoint_rows(lines, shares, name),
    ]


def _shares(lines: Lines) -> dict[str, list[float]]:
    told = {
        phase: [number(line, f"{phase}_share_learner") for line in lines]
        for phase in PHASES["learner"]
    }
    return with_other(told)


def _checkpoint_rows(lines: Lines, shares: Mapping[str, list[float]], name: str) -> list[Row]:
    """What a checkpoint takes from the training, against an update in the same intervals."""
    seconds = _differences(lines, "run_time_s")
    counts = _differences(lines, "updates")
    in_update = [1.0 - number(line, "gap_share_learner") for line in lines[1:]]
    update_s = [
        share * interval_s / count
        for share, interval_s, count in zip(in_update, seconds, counts, strict=True)
        if count > 0
    ]
    checkpoint_s = [
        share * interval_s
        for share, interval_s in zip(shares["checkpoint"], seconds, strict=True)
        if share > 0
    ]
    named = {
        f"an update in the learner process, {name}": update_s,
        f"a checkpoint in the training thread, {name}": checkpoint_s,
    }
    group = f"checkpoint {name}"
    return against_first(
        [figure(who, values, "s", group=group) for who, values in named.items() if values]
    )


def _differences(lines: Lines, name: str) -> list[float]:
    return [number(after, name) - number(before, name) for before, after in pairwise(lines)]
