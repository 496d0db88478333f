"""The benchmark `learner`: our update and a plain one in turns, its limits, and the gaps between.

Updates are measured in this process, with one thread where the row does not say two; the plain one
with torch's own setting of threads is in a child.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import product
from typing import Any, cast

import torch

from common.allocator import keep_freed_memory
from common.batch import Batch, allocate_batch
from common.config import Settings
from common.devices import has_fast_bfloat16
from common.network_bodies import NetworkKind
from common.networks import QuantileNetwork, build_network
from common.specs import DataSpec
from launch.benchmarks.arithmetic import (
    PRECISIONS,
    Precision,
    product_contenders,
    update_contenders,
)
from launch.benchmarks.gaps import GapPlan, gap_rows
from launch.benchmarks.layouts import layout_contenders
from launch.benchmarks.measure import Bench, Contender, Effort, Result, Row, Work, measure
from launch.benchmarks.operators import operator_rows
from launch.benchmarks.plain_update import PlainLearner
from launch.benchmarks.scene import open_scene
from launch.benchmarks.threads import SPINNING_S, measure_threads, plain_update, updates
from launch.benchmarks.update_variants import VARIANTS

SEED = 1
NETWORKS = ("small", "nature")
BATCH_SIZES = (32, 64, 128, 256)
PLAIN_VARIANTS = {f"plain, {name}": make for name, make in VARIANTS.items()}
OURS: Mapping[Precision, str] = {"off": "update: ours", "bfloat16": "update: ours, bfloat16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerPlan:
    batch_size: int = 64
    rounds: int = 60
    updates_per_turn: int = 32
    """Where a thread beside is measured."""
    compiles: bool = True


def run(effort: Effort) -> Result:
    plan = LearnerPlan(
        rounds=effort.turns(60, 8),
        updates_per_turn=4 if effort.quick else 32,
        compiles=not effort.quick,
    )
    # As a learner does; here the plain updates have it, too.
    keep_freed_memory()
    updates = compare_updates(plan)
    limits = compare_arithmetic(plan, max(plan.rounds // 3, 2))
    threads = compare_threads(plan, max(plan.rounds // 6, 2))
    operators = profile_operators(plan)
    precisions = known_precisions()
    gaps = [
        row
        for precision in (precisions[-1:] if effort.quick else precisions)
        for row in gap_rows(GapPlan(precision=precision, seconds=effort.seconds(60.0, 6.0)))
    ]
    rows = [*updates.rows, *limits, *threads.rows, *operators, *gaps]
    return Result(rows, (*updates.notes, *threads.notes))


def known_precisions() -> list[Precision]:
    """Those that this processor multiplies itself."""
    return list(PRECISIONS) if has_fast_bfloat16() else ["off"]


def compare_updates(plan: LearnerPlan) -> Result:
    spec = DataSpec()
    batch = random_batch(plan.batch_size, spec)
    works: dict[str, Work] = {}
    notes: list[str] = []
    for name, make in {"plain": PlainLearner, **PLAIN_VARIANTS}.items():
        works[f"update: {name}"] = partial(make(*both_networks(spec)).update, batch)
    precisions = known_precisions()
    if len(precisions) < len(PRECISIONS):
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
    precisions = known_precisions()

    def make(network: str, precision: str) -> Work:
        return _our_update(spec, batch, precision, network)

    contenders, rows = update_contenders(NETWORKS, precisions, make)
    for network in NETWORKS:
        online, _ = both_networks(spec, network)
        contenders |= layout_contenders(network, online, plan.batch_size)
    bench = Bench(
        contenders={**product_contenders(precisions), **contenders, **_by_batch(spec)},
        clock=time.thread_time,
    )
    return [*rows, *measure(bench, rounds).rows]


def compare_threads(plan: LearnerPlan, rounds: int) -> Result:
    """What a second thread brings to a product of matrices and to an update."""
    precisions = known_precisions()
    alone, beside = thread_contenders(plan, precisions)
    with open_scene(Settings()) as scene:
        first = {
            f"update: plain, {network}, two threads as torch sets them": replace(
                updates(
                    plain_update(scene, network, plan.batch_size),
                    plan.updates_per_turn,
                    thread_group(network),
                ),
                rest_s=SPINNING_S,
            )
            for network in NETWORKS
        }
        contenders = {**product_contenders(precisions), **alone}
        return measure_threads(contenders, rounds, beside, first)


def thread_group(network: str) -> str:
    return f"threads: {network}"


def thread_contenders(
    plan: LearnerPlan, precisions: Sequence[Precision]
) -> tuple[dict[str, Contender], dict[str, Work]]:
    """Updates by themselves, and ours with a thread beside."""
    spec = DataSpec()
    batch = random_batch(plan.batch_size, spec)
    alone, beside = dict[str, Contender](), dict[str, Work]()

    def add(name: str, network: str, work: Work) -> None:
        alone[name] = updates(work, plan.updates_per_turn, thread_group(network))

    for network in NETWORKS:
        plain = PlainLearner(*both_networks(spec, network))
        add(f"update: plain, {network}", network, partial(plain.update, batch))
        for precision in precisions:
            name = f"update: ours, {network}, {PRECISIONS[precision]}"
            add(name, network, _our_update(spec, batch, precision, network))
            learner = _our_learner(spec, precision, network, second_threads=1)
            beside[name] = partial(update_beside, learner, batch, plan.updates_per_turn)
    return alone, beside


def update_beside(learner: Any, batch: Batch, count: int) -> object:
    """As in training the batch after it is known; what is begun for it ends within the turn."""
    told = [learner.update(batch, lambda: batch) for _ in range(count)]
    learner.settle()
    return told[-1]


def profile_operators(plan: LearnerPlan) -> list[Row]:
    spec = DataSpec()
    batch = random_batch(plan.batch_size, spec)
    return operator_rows(
        {
            f"{network}, {PRECISIONS[precision]}": _our_update(spec, batch, precision, network)
            for network, precision in product(NETWORKS, known_precisions())
        }
    )


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


def both_networks(spec: DataSpec, kind: str = "small") -> tuple[QuantileNetwork, QuantileNetwork]:
    """The same ones for every contender."""
    torch.manual_seed(SEED)
    online, target = (build_network(cast("NetworkKind", kind), spec) for _ in range(2))
    return online, target


def _our_learner(
    spec: DataSpec, mixed_precision: str, kind: str = "small", *, second_threads: int = 0
) -> Any:
    module = import_module("learner.update")
    settings = module.UpdateSettings(mixed_precision=mixed_precision, second_threads=second_threads)
    return module.Learner(*both_networks(spec, kind), settings)


def _our_update(spec: DataSpec, batch: Batch, mixed_precision: str, kind: str = "small") -> Work:
    learner = _our_learner(spec, mixed_precision, kind)
    return lambda: learner.update(batch)


def _compiled_update(spec: DataSpec, batch: Batch, mixed_precision: str) -> Work | None:
    learner = _our_learner(spec, mixed_precision)
    return (lambda: learner.update(batch)) if learner.compile(batch) else None
