"""The benchmark `learner`: our update and a plain one in turns, and the gaps between updates.

The gaps are those of a real learner process, fed by a real replay server that always has data.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any, cast

import torch

from common.batch import Batch, allocate_batch
from common.checkpoint_files import list_numbered
from common.config import ActorSettings, EnvSettings, LearnerSettings, ReplaySettings, Settings
from common.devices import has_fast_bfloat16, learner_thread_count
from common.errors import BenchmarkFailed
from common.jsonl import last_record, read_jsonl
from common.network_bodies import NetworkKind
from common.networks import QuantileNetwork, build_network
from common.specs import DataSpec
from launch.benchmarks.arithmetic import product_contenders, update_contenders
from launch.benchmarks.measure import Bench, Contender, Effort, Result, Row, Work, figure, measure
from launch.benchmarks.plain_update import PlainLearner
from launch.benchmarks.replay import NO_BALANCE_AGENT_STEPS
from launch.benchmarks.scene import Scene, Talker, open_scene
from launch.benchmarks.update_variants import VARIANTS

GAPS = ("wait", "copy", "priorities", "logging", "publish", "checkpoint")
"""Phases of the learner that are not the update itself."""
START_DEADLINE_S = 120.0
SEED = 1
BATCH_SIZES = (32, 64, 128, 256)
PLAIN_VARIANTS = {f"plain, {name}": make for name, make in VARIANTS.items()}
OURS = {"off": "update: ours", "bfloat16": "update: ours, bfloat16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerPlan:
    batch_size: int = 64
    rounds: int = 60
    seconds: float = 40.0
    """That the learner process is watched."""
    compiles: bool = True
    env: EnvSettings = field(default_factory=EnvSettings)
    """Whose observations the learner process trains on."""

    @property
    def settings(self) -> Settings:
        """Learning never waits for play."""
        base = Settings(
            env=self.env,
            actor=ActorSettings(actors=1),
            replay=ReplaySettings(
                capacity=10_000,
                learning_starts=1_000,
                balance_slack_agent_steps=NO_BALANCE_AGENT_STEPS,
            ),
            learner=LearnerSettings(checkpoint_interval_s=5.0, keep_checkpoints=1_000),
        )
        interval_s = min(1.0, self.seconds / 4)
        return replace(base, run=replace(base.run, device="cpu", metrics_interval_s=interval_s))


def run(effort: Effort) -> Result:
    plan = LearnerPlan(
        rounds=effort.turns(60, 8),
        seconds=effort.seconds(40.0, 6.0),
        compiles=not effort.quick,
    )
    updates = compare_updates(plan)
    limits = compare_arithmetic(plan, max(plan.rounds // 3, 2))
    return Result([*updates.rows, *limits, *gap_rows(plan)], updates.notes)


def compare_updates(plan: LearnerPlan) -> Result:
    spec = DataSpec()
    batch = random_batch(plan.batch_size, spec)
    works: dict[str, Work] = {}
    notes: list[str] = []
    for name, make in {"plain": PlainLearner, **PLAIN_VARIANTS}.items():
        works[f"update: {name}"] = partial(make(*_networks(spec)).update, batch)
    precisions = list(OURS) if has_fast_bfloat16() else ["off"]
    if len(precisions) < len(OURS):
        notes.append("bfloat16 is not measured: this CPU does not multiply it")
    works |= {OURS[precision]: _our_update(spec, batch, precision) for precision in precisions}
    for precision in precisions if plan.compiles else ():
        compiled = _compiled_update(spec, batch, precision)
        if compiled is None:
            notes.append("the compiled update is not measured: torch.compile fails here")
            break
        works[f"{OURS[precision]}, compiled"] = compiled
    contenders = {name: Contender(work=work, group="update") for name, work in works.items()}
    return measure(Bench(contenders=contenders, notes=tuple(notes)), plan.rounds)


def compare_arithmetic(plan: LearnerPlan, rounds: int) -> list[Row]:
    """Products of matrices and whole updates, in operations per second of processor time."""
    spec = DataSpec()
    batch = random_batch(plan.batch_size, spec)
    precisions = list(OURS) if has_fast_bfloat16() else ["off"]

    def make(network: str, precision: str) -> Work:
        return _our_update(spec, batch, precision, network)

    contenders, rows = update_contenders(["small", "nature"], precisions, make)
    bench = Bench(
        contenders={**product_contenders(precisions), **contenders, **_by_batch(spec)},
        clock=time.thread_time,
    )
    return [*rows, *measure(bench, rounds).rows]


def _by_batch(spec: DataSpec) -> dict[str, Contender]:
    """What a larger batch costs."""
    return {
        f"update: ours, batch {size}": Contender(
            work=_our_update(spec, random_batch(size, spec), "off"), group="batch"
        )
        for size in BATCH_SIZES
    }


def random_batch(batch_size: int, spec: DataSpec) -> Batch:
    """As the replay server would send it; a third of the games ended."""
    rng = torch.Generator().manual_seed(SEED)
    batch = allocate_batch(batch_size, spec)
    for images in (batch.observations, batch.next_observations):
        images.random_(0, 256, generator=rng)
    for actions in (batch.actions, batch.prev_actions, batch.next_prev_actions):
        actions.random_(0, spec.num_actions, generator=rng)
    batch.returns.normal_(generator=rng)
    batch.discounts.uniform_(generator=rng).sub_(1 / 3).clamp_(min=0.0)
    batch.weights.uniform_(0.1, 1.0, generator=rng)
    for ids in (batch.slots, batch.generations):
        ids.zero_()
    return batch


def _networks(spec: DataSpec, kind: str = "small") -> tuple[QuantileNetwork, QuantileNetwork]:
    """The same ones for every contender."""
    torch.manual_seed(SEED)
    online, target = (build_network(cast("NetworkKind", kind), spec) for _ in range(2))
    return online, target


def _our_learner(spec: DataSpec, mixed_precision: str, kind: str = "small") -> Any:
    module = import_module("learner.update")
    settings = module.UpdateSettings(mixed_precision=mixed_precision)
    return module.Learner(*_networks(spec, kind), settings)


def _our_update(spec: DataSpec, batch: Batch, mixed_precision: str, kind: str = "small") -> Work:
    learner = _our_learner(spec, mixed_precision, kind)
    return lambda: learner.update(batch)


def _compiled_update(spec: DataSpec, batch: Batch, mixed_precision: str) -> Work | None:
    learner = _our_learner(spec, mixed_precision)
    return (lambda: learner.update(batch)) if learner.compile(batch) else None


def gap_rows(plan: LearnerPlan) -> list[Row]:
    """Shares of the time of a learner process that has all the data it wants."""
    settings = plan.settings
    with open_scene(settings) as scene:
        scene.start_program("replay_server")
        threads = learner_thread_count(settings.learner.learner_threads)
        scene.start_program("learner", "--resume", "none", threads=threads)
        job = {"config": str(scene.paths.config), "index": 0}
        sender = Talker(scene, "sender-0", "launch.benchmarks.sender", job)
        sender.tell({"seconds": START_DEADLINE_S + plan.seconds, "agent_steps_per_s": 1_000})
        scene.wait_until("the first update", lambda: _updates(scene) > 0, START_DEADLINE_S)
        first, saved = len(_beats(scene)), len(list_numbered(scene.paths.checkpoints))
        enough = first + max(int(plan.seconds / settings.run.metrics_interval_s), 2)
        deadline_s = 3 * plan.seconds + START_DEADLINE_S
        scene.wait_until("heartbeats", lambda: len(_beats(scene)) >= enough, deadline_s)
        # The first interval began before the first update.
        beats = _beats(scene)[first + 1 :]
        checkpoints = len(list_numbered(scene.paths.checkpoints)) - saved
        return rows_of(beats, checkpoints)


def rows_of(beats: Sequence[Mapping[str, object]], checkpoints: int) -> list[Row]:
    if not beats:
        raise BenchmarkFailed("the learner told nothing of its time")
    shares = {name: [_number(beat, f"share_{name}") for beat in beats] for name in GAPS}
    together = [sum(values) for values in zip(*shares.values(), strict=True)]
    rows = [figure(f"gap: {name}", values, "ratio") for name, values in shares.items()]
    rows.append(figure("gaps together", together, "ratio"))
    if checkpoints > 0:
        seconds = _number(beats[-1], "uptime_s") - _number(beats[0], "uptime_s")
        spent_s = sum(shares["checkpoint"][1:]) / max(len(beats) - 1, 1) * seconds
        rows.append(figure("a checkpoint in the training thread", [spent_s / checkpoints], "s"))
    return rows


def _beats(scene: Scene) -> list[dict[str, object]]:
    return list(read_jsonl(scene.paths.process_heartbeat("learner-0")))


def _updates(scene: Scene) -> float:
    last = last_record(scene.paths.process_heartbeat("learner-0")) or {}
    return _number(last, "updates_here")


def _number(record: Mapping[str, object], name: str) -> float:
    value = record.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
