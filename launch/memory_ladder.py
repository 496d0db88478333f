"""Less memory, rung by rung: pure arithmetic over replay capacity, batch size and actors.

A rung halves one of them: the one whose half frees the most where memory is short. Who fits a
start to the free memory and who ran out of it go down the same ladder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

Pool = Literal["ram", "device"]
MIB = 2**20
PROCESS_BYTES = 256 * MIB
"""An actor, the evaluator or the replay server without its buffer; 190 to 205 MB were measured."""
LEARNER_BYTES = 384 * MIB
"""Without its batches; 290 MB were measured."""
CUDA_RAM_BYTES = 1024 * MIB
"""What a process that uses CUDA has in RAM for it; not measured here."""
CUDA_CONTEXT_BYTES = 512 * MIB
"""What such a process takes on the device before anything else; not measured here."""
SAMPLE_BYTES = {"small": 700_000, "nature": 900_000, "impala": 3_000_000}
"""Of an update, per transition of the batch: 0.61, 0.76 and 2.7 MB were measured, of 84 x 84 x 4.
"""
MIN_BATCH_SIZE = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPlan:
    """What a run asks for."""

    capacity: int
    batch_size: int
    actors: int

    def changes(self, before: MemoryPlan) -> str:
        """In words, such as `capacity 200000 -> 100000`."""
        names = ("capacity", "batch_size", "actors")
        pairs = [(name, getattr(before, name), getattr(self, name)) for name in names]
        return ", ".join(f"{name} {old} -> {new}" for name, old, new in pairs if old != new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """Of each kind of memory; without a GPU everything is RAM."""

    ram: int
    device: int = 0

    def of(self, pool: Pool) -> int:
        return self.ram if pool == "ram" else self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a plan needs. The buffer's size is asked for, because only it knows its layout."""

    replay_bytes: Callable[[int], int]
    sample_bytes: int
    evaluators: int
    on_device: bool
    replay_shards: int = 1

    def need(self, plan: MemoryPlan) -> Bytes:
        others = plan.actors + self.evaluators + self.replay_shards
        processes = others * PROCESS_BYTES + LEARNER_BYTES
        arrays = self.replay_bytes(plan.capacity) + plan.batch_size * self.sample_bytes
        if not self.on_device:
            return Bytes(ram=processes + arrays)
        # The learner and the replay servers use CUDA.
        users = 1 + self.replay_shards
        return Bytes(
            ram=processes + users * CUDA_RAM_BYTES, device=users * CUDA_CONTEXT_BYTES + arrays
        )


def next_rung(
    plan: MemoryPlan, floor: MemoryPlan, costs: Costs, pool: Pool = "ram"
) -> MemoryPlan | None:
    """The plan with the one half that frees the most in this pool; None on the lowest rung."""
    halves = [
        replace(plan, capacity=max(plan.capacity // 2, floor.capacity)),
        replace(plan, actors=max(plan.actors // 2, floor.actors)),
        replace(plan, batch_size=max(plan.batch_size // 2, floor.batch_size)),
    ]
    need = costs.need(plan).of(pool)
    freed = {half: need - costs.need(half).of(pool) for half in halves}
    best = max(freed, key=lambda half: freed[half])
    return best if freed[best] > 0 else None


def fit(plan: MemoryPlan, floor: MemoryPlan, costs: Costs, room: Bytes) -> MemoryPlan | None:
    """The plan, or the highest rung below it that fits in the room; None when not even the last."""
    pools: tuple[Pool, Pool] = ("ram", "device")
    for pool in pools:
        while costs.need(plan).of(pool) > room.of(pool):
            lower = next_rung(plan, floor, costs, pool)
            if lower is None:
                return None
            plan = lower
    return plan
