"""Fits a run to the memory that is free, and takes it down a rung when memory runs out."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from common.config import Settings
from common.devices import resolve_device
from common.errors import CapacityError
from common.free_memory import free_memory_bytes, free_ram_bytes
from common.replay_capacity import DEFAULT_CAPACITY_ITEMS, layout_of, memory_bytes
from launch.memory_ladder import (
    MIB,
    MIN_BATCH_SIZE,
    SAMPLE_BYTES,
    Bytes,
    Costs,
    MemoryPlan,
    Pool,
    fit,
    next_rung,
)

log = logging.getLogger(__name__)

SHARE = 0.8
"""Of the free memory that a run is fitted to: estimates err, and others need some too."""
MAX_RUNGS = 8
"""Of one start; who needs more has another problem than the size of the run."""


def fit_settings(settings: Settings) -> tuple[Settings, str]:
    """The settings that fit in the memory that is free now, and a line about it."""
    on_device = settings.run.device.startswith("cuda")
    free = Bytes(ram=free_ram_bytes())
    if on_device:
        device = resolve_device(settings.run.device)
        free = replace(free, device=free_memory_bytes(device))
    return fit_to(settings, free)


def fit_to(settings: Settings, free: Bytes) -> tuple[Settings, str]:
    wanted, floor, costs = plan_of(settings), floor_of(settings), costs_of(settings)
    room = Bytes(ram=int(free.ram * SHARE), device=int(free.device * SHARE))
    plan = fit(wanted, floor, costs, room)
    if plan is None:
        raise CapacityError(
            f"--auto-mem: even {describe(floor)} need {_shown(costs.need(floor))}, "
            f"and {_shown(free)} are free; end other programs, or lower --learning-starts"
        )
    words = plan.changes(wanted) or f"{describe(plan)} fit"
    line = f"{_shown(free)} free, {_shown(costs.need(plan))} needed"
    return with_plan(settings, plan), f"auto-mem: {words} ({line})"


def plan_of(settings: Settings) -> MemoryPlan:
    return MemoryPlan(
        capacity=settings.replay.capacity or DEFAULT_CAPACITY_ITEMS,
        batch_size=settings.learner.batch_size,
        actors=settings.actor.actors,
    )


def floor_of(settings: Settings) -> MemoryPlan:
    """The lowest rung: a buffer must outlive the start of learning, a batch must say something."""
    plan, starts = plan_of(settings), settings.replay.learning_starts
    least = max(2 * starts, plan.batch_size, settings.actor.block_steps)
    return MemoryPlan(
        capacity=min(plan.capacity, least),
        batch_size=min(plan.batch_size, MIN_BATCH_SIZE),
        actors=settings.actor.min_actors,
    )


def costs_of(settings: Settings) -> Costs:
    layout = layout_of(settings)
    return Costs(
        replay_bytes=lambda capacity: memory_bytes(capacity, layout),
        sample_bytes=SAMPLE_BYTES[settings.learner.network],
        evaluators=settings.evaluation.evaluators,
        on_device=settings.run.device.startswith("cuda"),
        replay_shards=settings.replay.replay_shards,
    )


def with_plan(settings: Settings, plan: MemoryPlan) -> Settings:
    return replace(
        settings,
        replay=replace(settings.replay, capacity=plan.capacity),
        learner=replace(settings.learner, batch_size=plan.batch_size),
        actor=replace(settings.actor, actors=plan.actors),
    )


@dataclass(slots=True)
class RungCounter:
    """The rungs of one start; there is an end to them."""

    taken: int = 0

    def step_down(self, settings: Settings, pool: Pool) -> tuple[Settings, str] | None:
        """The settings one rung lower and a line about them; None when there is no such rung."""
        plan = plan_of(settings)
        lower = next_rung(plan, floor_of(settings), costs_of(settings), pool)
        if lower is None or self.taken >= MAX_RUNGS:
            log.error("no rung is left", extra={"taken": self.taken, "plan": describe(plan)})
            return None
        self.taken += 1
        words = lower.changes(plan)
        log.warning("one rung less memory", extra={"rung": self.taken, "changes": words})
        return with_plan(settings, lower), f"auto-mem: rung {self.taken} down: {words}"


def describe(plan: MemoryPlan) -> str:
    return f"capacity {plan.capacity}, batch size {plan.batch_size} and {plan.actors} actors"


def _shown(size: Bytes) -> str:
    on_device = f" + {size.device / MIB:,.0f} MiB on the device" if size.device else ""
    return f"{size.ram / MIB:,.0f} MiB RAM{on_device}"
