"""The replay buffer: storage, priorities, sampler and statistics behind four verbs.

No sockets and no balance here: who may insert or sample is decided by `rate_limit`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from common.batch import Batch
from common.blocks import StepBlock
from common.errors import ReplayEmpty
from common.phases import PhaseTimer
from common.replay_sizes import DEFAULT_BLOCK_ITEMS, ring_sizes
from common.specs import DataSpec
from replay_server.priorities import DEFAULT_EPSILON, PriorityTable
from replay_server.sampler import Sampler
from replay_server.statistics import (
    Clock,
    IntervalReading,
    PhaseMeans,
    ReplayStats,
    UniqueRatio,
    summarise_priorities,
)
from replay_server.storage import BlockStorage, StorageLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    capacity_items: int
    block_items: int = DEFAULT_BLOCK_ITEMS
    """Items in a full block; the rings are laid out for it."""
    alpha: float = 0.5
    epsilon: float = DEFAULT_EPSILON
    discount: float = 0.95
    seed: int = 1
    reward_dtype: torch.dtype = torch.float16


class ReplayBuffer:
    """Not thread-safe. Blocks must have passed `common.blocks.validate_block`."""

    def __init__(
        self,
        spec: DataSpec,
        options: ReplayOptions,
        *,
        device: torch.device | str = "cpu",
        clock: Clock = time.perf_counter,
    ) -> None:
        sizes = ring_sizes(options.capacity_items, spec, block_items=options.block_items)
        self._timer = PhaseMeans(clock)
        self.storage = BlockStorage(sizes, spec, device=device, reward_dtype=options.reward_dtype)
        self.priorities = PriorityTable(
            sizes.steps, alpha=options.alpha, epsilon=options.epsilon, device=device
        )
        self._sampler = Sampler(
            self.storage,
            self.priorities,
            discount=options.discount,
            seed=options.seed,
            timer=self._timer,
        )
        self._unique = UniqueRatio(device=device)
        self._summary = IntervalReading(partial(summarise_priorities, self.priorities.tree), clock)
        self._drift = IntervalReading(self.check_sums, clock)
        self.inserted_items_total = 0
        self.inserted_blocks_total = 0
        self.sampled_items_total = 0
        self.stale_priorities_total = 0
        self.refused_priorities_total = 0

    @property
    def shares(self) -> PhaseTimer:
        """Where the time goes; the process adds its own phases around the buffer's."""
        return self._timer.shares

    @property
    def size(self) -> int:
        """Items that can be sampled."""
        return self.storage.num_items

    @property
    def capacity_items(self) -> int:
        return self.storage.sizes.items

    @property
    def mass(self) -> float:
        """Sum of all priorities. Waits for the device."""
        return float(self.priorities.tree.total())

    def mass_and_least(self) -> tuple[float, float]:
        """The mass, and the least priority in the batch sampled last. Waits once for the device."""
        both = (self.priorities.tree.total(), self._sampler.min_priority)
        mass, least = torch.stack(both).tolist()
        return mass, least

    def insert(self, block: StepBlock) -> None:
        """Store a block and make its items samplable; the oldest blocks make room."""
        with self._timer.phase("insert"):
            placement = self.storage.insert(block)
            self.priorities.place(placement, block.priorities)
        self.inserted_items_total += block.num_items
        self.inserted_blocks_total += 1

    def sample(self, batch_size: int, beta: float, out: Batch | None = None) -> Batch:
        """Draw with replacement, into `out` where given (any device), else on the own device."""
        if self.size == 0:
            raise ReplayEmpty("the replay buffer holds no items; wait for the first block")
        if out is not None and out.size != batch_size:
            raise ValueError(f"`out` has room for {out.size} items, expected {batch_size}")
        batch = self._sampler.draw(batch_size, beta=beta, out=out)
        self._unique.add(batch.slots)
        self.sampled_items_total += batch_size
        return batch

    def update_priorities(self, slots: Tensor, generations: Tensor, errors: Tensor) -> int:
        """Set the errors of sampled items; returns how many of them are no longer stored.

        Negative and non-finite errors are refused and counted in the statistics.
        """
        with self._timer.phase("update"):
            counts = self.priorities.update(
                self.storage.columns.generations, slots, generations, errors
            )
        self.stale_priorities_total += counts.stale
        self.refused_priorities_total += counts.refused
        return counts.stale

    def check_sums(self) -> float:
        """Largest error of the tree's sums; they are rebuilt if there is one. For rare checks."""
        drift = self.priorities.tree.drift()
        if drift > 0:
            self.priorities.tree.rebuild()
        return drift

    def sum_drift(self) -> float:
        """What `check_sums` found last; it reads the whole tree, so only every ten seconds."""
        return self._drift.read()

    def restore(self, layout: StorageLayout, quanta: Tensor, random_state: Tensor) -> None:
        """Take over blocks that have been put back into the rings, and how often each is drawn."""
        self.storage.set_layout(layout)
        self.priorities.tree.set_quanta(quanta.to(self.storage.device))
        self.set_random_state(random_state)

    def random_state(self) -> Tensor:
        """Uint8 CPU tensor for a checkpoint."""
        return self._sampler.generator.get_state()

    def set_random_state(self, state: Tensor) -> None:
        self._sampler.generator.set_state(state)

    def stats(self) -> ReplayStats:
        """Waits for the device; for once per reporting interval."""
        unique_ratio, unique_ratio_mean = self._unique.read()
        return ReplayStats(
            size_items=self.size,
            capacity_items=self.capacity_items,
            fill=self.size / self.capacity_items,
            mass=self.mass,
            num_blocks=self.storage.num_blocks,
            inserted_items_total=self.inserted_items_total,
            inserted_blocks_total=self.inserted_blocks_total,
            sampled_items_total=self.sampled_items_total,
            stale_priorities_total=self.stale_priorities_total,
            refused_priorities_total=self.refused_priorities_total,
            unique_ratio=unique_ratio,
            unique_ratio_mean=unique_ratio_mean,
            priorities=self._summary.read(),
            phase_ms=self._timer.means_ms(),
        )
