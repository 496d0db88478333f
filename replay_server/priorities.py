"""Which slots are drawn how often: errors become priorities, ids are checked, the tree is kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from common.blocks import F32, MAX_PRIORITY
from common.errors import ConfigError
from replay_server.storage import Placement
from replay_server.sum_tree import SumTree

DEFAULT_EPSILON = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateCounts:
    """What became of the ids of one priority update."""

    applied: int
    stale: int
    refused: int
    """Fresh ids with an error that is negative or not finite."""


class PriorityTable:
    """Priority of slot i = (|error| + epsilon)^alpha; 0 where nothing can be sampled."""

    def __init__(
        self,
        num_slots: int,
        *,
        alpha: float,
        epsilon: float = DEFAULT_EPSILON,
        device: torch.device | str = "cpu",
    ) -> None:
        if not 0.0 <= alpha <= 1.0:
            raise ConfigError(f"priority exponent alpha must be in [0, 1], got {alpha}")
        if not 0.0 < epsilon <= 1.0:
            # With epsilon 0 a buffer of perfect predictions would have nothing to sample.
            raise ConfigError(f"priority epsilon must be in (0, 1], got {epsilon}")
        self._alpha = alpha
        self._epsilon = epsilon
        # The leaf after the last slot takes what must not be applied, always with priority 0:
        # so shapes stay fixed and nothing waits for the device to filter.
        self._spare_leaf = num_slots
        self.tree = SumTree(num_slots + 1, device=device)

    def place(self, placement: Placement, errors: F32) -> None:
        """Forget evicted slots and enter the items that took new ones, in one tree update."""
        items, evicted = placement.items, placement.evicted.indices()
        # A slot that was evicted and filled again must end up filled.
        emptied = evicted[(evicted - items.first) % items.ring >= items.length]
        leaves = np.concatenate([emptied, items.indices()])
        priorities = np.zeros(len(leaves))
        priorities[len(emptied) :] = (errors.astype(np.float64) + self._epsilon) ** self._alpha
        device = self.tree.device
        self.tree.set_distinct(
            torch.from_numpy(leaves).to(device), torch.from_numpy(priorities).to(device)
        )

    def update(
        self, stored_generations: Tensor, slots: Tensor, generations: Tensor, errors: Tensor
    ) -> UpdateCounts:
        """Apply the learner's errors to the items that are still there. Waits for the device."""
        device = self.tree.device
        slots, generations = slots.to(device), generations.to(device)
        errors = errors.to(device, dtype=torch.float64)
        fresh = is_fresh(stored_generations, slots, generations)
        usable = torch.isfinite(errors) & (errors >= 0)
        applied = fresh & usable
        scaled = (errors.clamp(max=MAX_PRIORITY) + self._epsilon) ** self._alpha
        self.tree.set(
            torch.where(applied, slots, self._spare_leaf), torch.where(applied, scaled, 0.0)
        )
        num_fresh, num_applied = torch.stack((fresh.sum(), applied.sum())).tolist()
        return UpdateCounts(
            applied=num_applied,
            stale=len(slots) - num_fresh,
            refused=num_fresh - num_applied,
        )


def is_fresh(stored_generations: Tensor, slots: Tensor, generations: Tensor) -> Tensor:
    """Bool [K]: the slot exists and still holds the item that the id was given for."""
    in_range = (slots >= 0) & (slots < len(stored_generations))
    # An index out of range would be fatal on CUDA, so those ids look at slot 0 instead.
    stored = stored_generations.index_select(0, torch.where(in_range, slots, 0))
    return in_range & (stored == generations) & (generations >= 0)
