"""Draws batches: stratified prioritised sampling, then n-step returns and frame stacks.

The functions are pure and run on any device; `Sampler` adds the random generator and the timing.
B items, n steps, S frames per stack.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from common.batch import Batch, allocate_batch
from common.blocks import FLAG_TERMINATED
from common.errors import ConfigError
from replay_server.priorities import PriorityTable
from replay_server.statistics import PhaseMeans
from replay_server.storage import BlockStorage, StepColumns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Window:
    """The steps that the returns of B items sum."""

    returns: Tensor
    """float32 [B]."""
    discounts: Tensor
    """float32 [B], what the value of the bootstrap state is multiplied by."""
    last_slots: Tensor
    """int64 [B], the last step of each window; it leads to the bootstrap state."""


def discount_powers(discount: float, n_step: int, *, device: torch.device | str = "cpu") -> Tensor:
    """Float32 [n + 1]: discount to the power 0 .. n."""
    if not 0.0 <= discount <= 1.0:
        raise ConfigError(f"discount must be in [0, 1], got {discount}")
    powers = torch.full((n_step + 1,), discount, dtype=torch.float64, device=device)
    return (powers ** torch.arange(n_step + 1, device=device)).to(torch.float32)


def n_step_windows(columns: StepColumns, slots: Tensor, powers: Tensor) -> Window:
    """Sum rewards up to n steps or the end of the episode, whichever comes first."""
    n_step = len(powers) - 1
    offsets = torch.arange(n_step, device=slots.device)
    steps = (slots.unsqueeze(1) + offsets) % len(columns.flags)
    ended = columns.flags.take(steps) != 0
    # A step counts when no step before it in the window ended the episode. What lies behind an
    # end may belong to another block: it is masked, never multiplied, whatever it holds.
    ends_before = ended.cumsum(1) - ended.to(torch.int64)
    counts = ends_before == 0
    rewards = columns.rewards.take(steps).to(torch.float32)
    returns = torch.where(counts, rewards * powers.narrow(0, 0, n_step), 0.0).sum(1)
    lengths = counts.sum(1)
    last_slots = steps.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1)
    terminated = columns.flags.take(last_slots) == FLAG_TERMINATED
    discounts = torch.where(terminated, 0.0, powers.take(lengths))
    return Window(returns=returns, discounts=discounts, last_slots=last_slots)


def stack_frame_slots(newest: Tensor, older: Tensor, *, stack: int, num_frame_slots: int) -> Tensor:
    """Frame slots [B, S], oldest first; before an episode's first frame that frame repeats.

    `newest` int64 [B] may be one past the ring; `older` [B] counts frames of the same episode.
    """
    ages = torch.arange(stack - 1, -1, -1, device=newest.device)
    reachable = torch.minimum(ages, older.to(torch.int64).unsqueeze(1))
    return (newest.unsqueeze(1) - reachable) % num_frame_slots


def importance_weights(priorities: Tensor, beta: float, least: Tensor | None = None) -> Tensor:
    """(N P(i))^-beta divided by its maximum in the batch; N and the total cancel out. [B].

    `least` is the smallest priority, where it is known already.
    """
    least = priorities.min() if least is None else least
    return ((least / priorities) ** beta).to(torch.float32)


class Sampler:
    """Fills batches from a storage and its priorities. Not thread-safe."""

    def __init__(
        self,
        storage: BlockStorage,
        priorities: PriorityTable,
        *,
        discount: float,
        seed: int,
        timer: PhaseMeans,
    ) -> None:
        self._storage = storage
        self._tree = priorities.tree
        self._powers = discount_powers(discount, storage.spec.n_step, device=storage.device)
        self.generator = torch.Generator(device=storage.device)
        self.generator.manual_seed(seed)
        self.min_priority = torch.zeros((), dtype=torch.float64, device=storage.device)
        """The least in the batch that was drawn last."""
        self._timer = timer

    def draw(self, batch_size: int, *, beta: float, out: Batch | None = None) -> Batch:
        """Draw from a storage that is not empty, into `out` where it is given.

        On the storage's own device `out` is written in place; else it is copied to.
        """
        device = self._storage.device
        in_place = out is not None and out.observations.device == device
        batch = out if out is not None and in_place else self._allocate(batch_size)
        with self._timer.phase("tree"):
            slots = self._tree.sample(self._stratified_uniforms(batch_size))
            priorities = self._tree.get(slots)
            self.min_priority = priorities.min()
            batch.weights.copy_(importance_weights(priorities, beta, self.min_priority))
        with self._timer.phase("window"):
            window = self._fill_scalars(batch, slots)
        with self._timer.phase("gather"):
            self._fill_stacks(batch, slots, window.last_slots)
        if out is None or in_place:
            return batch
        with self._timer.phase("copy"):
            _copy_batch(batch, out)
        return out

    def _allocate(self, batch_size: int) -> Batch:
        return allocate_batch(batch_size, self._storage.spec, self._storage.device)

    def _stratified_uniforms(self, batch_size: int) -> Tensor:
        """One draw from each of B equal parts of [0, 1)."""
        device = self._storage.device
        jitter = torch.rand(
            batch_size, dtype=torch.float64, device=device, generator=self.generator
        )
        return jitter.add_(torch.arange(batch_size, device=device)).div_(batch_size)

    def _fill_scalars(self, batch: Batch, slots: Tensor) -> Window:
        columns = self._storage.columns
        window = n_step_windows(columns, slots, self._powers)
        batch.actions.copy_(columns.actions.take(slots))
        batch.prev_actions.copy_(columns.prev_actions.take(slots))
        batch.next_prev_actions.copy_(columns.actions.take(window.last_slots))
        batch.returns.copy_(window.returns)
        batch.discounts.copy_(window.discounts)
        batch.slots.copy_(slots)
        batch.generations.copy_(columns.generations.take(slots))
        return window

    def _fill_stacks(self, batch: Batch, slots: Tensor, last_slots: Tensor) -> None:
        columns = self._storage.columns
        self._gather(
            columns.newest_frames.take(slots).to(torch.int64),
            columns.older_frames.take(slots),
            batch.observations,
        )
        # The frame after the last step follows its newest frame, in the same episode.
        self._gather(
            columns.newest_frames.take(last_slots).to(torch.int64) + 1,
            columns.older_frames.take(last_slots) + 1,
            batch.next_observations,
        )

    def _gather(self, newest: Tensor, older: Tensor, target: Tensor) -> None:
        frames = self._storage.frames
        frame_slots = stack_frame_slots(
            newest, older, stack=self._storage.spec.stack, num_frame_slots=len(frames)
        )
        rows = target.view(-1, self._storage.spec.frame_bytes)
        torch.index_select(frames, 0, frame_slots.view(-1), out=rows)


def _copy_batch(source: Batch, target: Batch) -> None:
    for field in fields(Batch):
        getattr(target, field.name).copy_(getattr(source, field.name))
