"""The benchmark `per`: prioritised sampling out of a million items, ours and cpprb in turns.

Both hold priorities alone: frames are what the benchmark `replay` moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import torch

from launch.benchmarks.blocks import BLOCK_ITEMS
from launch.benchmarks.extras import load_reference
from launch.benchmarks.kernels import operation_rows
from launch.benchmarks.measure import Bench, Contender, Effort, Result, Row, Work, measure

ALPHA = 0.5
BETA = 0.4
SEED = 1
CAPACITIES = (10_000, 100_000, 1_000_000)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerPlan:
    items: int = 1_048_576
    batch_size: int = 512
    rounds: int = 500


@dataclass(frozen=True, slots=True)
class PerCalls:
    """What both contenders can do."""

    sample: Work
    update: Work
    insert: Work

    def sample_and_update(self) -> None:
        self.sample()
        self.update()


def run(effort: Effort) -> Result:
    return compare_buffers(PerPlan(rounds=effort.turns(500, 50)))


def compare_buffers(plan: PerPlan) -> Result:
    cpprb, notes = load_reference("cpprb", "cpprb")
    ours = our_calls(plan)
    contenders: dict[str, Contender] = {}
    if cpprb is not None:
        contenders |= _contenders("cpprb", cpprb_calls(cpprb, plan), plan)
    contenders |= _contenders("ours", ours, plan)
    # Calls of a millisecond on one thread: by the wall clock other programs would decide.
    bench = Bench(contenders=contenders, notes=notes, clock=time.thread_time)
    result = measure(bench, plan.rounds)
    operations = operation_rows(
        {
            f"ours: sample {plan.batch_size}": ours.sample,
            f"ours: update {plan.batch_size}": ours.update,
            f"ours: insert {BLOCK_ITEMS}": ours.insert,
        }
    )
    return Result([*result.rows, *_by_capacity(plan), *operations], result.notes)


def _by_capacity(plan: PerPlan) -> Sequence[Row]:
    """What a larger buffer costs: deeper trees that fit into fewer caches."""
    contenders = {
        f"ours: sample + update {plan.batch_size} of {items:,}": Contender(
            work=our_calls(replace(plan, items=items)).sample_and_update, group="capacity"
        )
        for items in (CAPACITIES if plan.items > CAPACITIES[-1] else ())
    }
    return measure(Bench(contenders=contenders, clock=time.thread_time), plan.rounds).rows


def _contenders(who: str, calls: PerCalls, plan: PerPlan) -> dict[str, Contender]:
    of = f"{plan.batch_size} of {plan.items:,}"
    return {
        f"{who}: sample + update {of}": Contender(work=calls.sample_and_update, group="both"),
        f"{who}: sample {of}": Contender(work=calls.sample, group="sample"),
        f"{who}: update {of}": Contender(work=calls.update, group="update"),
        f"{who}: insert {BLOCK_ITEMS}": Contender(work=calls.insert, group="insert"),
    }


def our_calls(plan: PerPlan) -> PerCalls:
    priorities = import_module("replay_server.priorities")
    importance_weights: Callable[..., torch.Tensor] = import_module(
        "replay_server.sampler"
    ).importance_weights
    generator = torch.Generator().manual_seed(SEED)
    table = priorities.PriorityTable(plan.items, alpha=ALPHA)
    table.tree.set_distinct(torch.arange(plan.items), torch.rand(plan.items, generator=generator))
    # Written, as those of a used buffer are: fresh zeros are pages that are not there yet.
    generations = torch.ones(plan.items, dtype=torch.int64)
    drawn = torch.zeros(plan.batch_size, dtype=torch.int64)
    errors = torch.rand(plan.batch_size, generator=generator)
    strata = torch.arange(plan.batch_size)

    def sample() -> None:
        jitter = torch.rand(plan.batch_size, dtype=torch.float64, generator=generator)
        slots = table.tree.sample(jitter.add_(strata).div_(plan.batch_size))
        importance_weights(table.tree.get(slots), BETA)
        drawn.copy_(slots)

    def update() -> None:
        table.update(generations, drawn, generations.index_select(0, drawn), errors)

    return PerCalls(sample, update, _our_insert(table, plan.items))


def _our_insert(table: Any, items: int) -> Work:
    """Blocks around the ring; each takes the place of one that is evicted."""
    slot_range = import_module("replay_server.rings").SlotRange
    placement = import_module("replay_server.storage").Placement
    errors = np.random.default_rng(SEED).random(BLOCK_ITEMS, dtype=np.float32)
    first = 0

    def insert() -> None:
        nonlocal first
        after = (first + BLOCK_ITEMS) % items
        new, old = (slot_range(first=f, length=BLOCK_ITEMS, ring=items) for f in (first, after))
        table.place(placement(items=new, evicted=old, generation=0), errors)
        # What was evicted is filled next time, so the buffer stays full but for one block.
        first = after

    return insert


def cpprb_calls(cpprb: Any, plan: PerPlan) -> PerCalls:
    rng = np.random.default_rng(SEED)
    buffer = cpprb.PrioritizedReplayBuffer(plan.items, {"number": {}}, alpha=ALPHA)
    buffer.add(number=np.zeros(plan.items), priorities=rng.random(plan.items))
    indexes = np.zeros(plan.batch_size, dtype=np.int64)
    errors = rng.random(plan.batch_size)
    block, priorities = np.zeros(BLOCK_ITEMS), rng.random(BLOCK_ITEMS)

    def sample() -> None:
        nonlocal indexes
        indexes = buffer.sample(plan.batch_size, BETA)["indexes"]

    return PerCalls(
        sample,
        lambda: buffer.update_priorities(indexes, errors),
        lambda: buffer.add(number=block, priorities=priorities),
    )
