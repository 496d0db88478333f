"""A training batch: what the replay server delivers and the learner consumes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from common.specs import DataSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Batch:
    """B transitions as tensors on one device. Field order is the order on the wire."""

    observations: Tensor
    """uint8 [B, stack, H, W], oldest frame first."""
    next_observations: Tensor
    """uint8 [B, stack, H, W], the state that the return bootstraps from."""
    actions: Tensor
    """int64 [B]."""
    prev_actions: Tensor
    """int64 [B], `spec.no_action` at an episode's start."""
    next_prev_actions: Tensor
    """int64 [B], the action that led to `next_observations`."""
    returns: Tensor
    """float32 [B], discounted sum of the rewards until the bootstrap state."""
    discounts: Tensor
    """float32 [B], gamma to the number of summed rewards; 0 where the game ended."""
    weights: Tensor
    """float32 [B], importance weights, at most 1."""
    slots: Tensor
    """int64 [B], with `generations` the item ids that priorities are sent back for."""
    generations: Tensor
    """int64 [B]."""

    @property
    def size(self) -> int:
        return int(self.actions.shape[0])


def first_rows(batch: Batch, rows: int) -> Batch:
    """A view of the first transitions; `ValueError` when there are fewer."""
    if rows > batch.size:
        raise ValueError(f"{rows} of {batch.size} transitions")
    if rows == batch.size:
        return batch
    return Batch(**{name: getattr(batch, name).narrow(0, 0, rows) for name in Batch.__slots__})


FieldLayout = tuple[str, torch.dtype, tuple[int, ...]]


def batch_layout(batch_size: int, spec: DataSpec) -> tuple[FieldLayout, ...]:
    """Name, dtype and shape of each field: the one description of slots, frames and checks."""
    images = (batch_size, spec.stack, spec.height, spec.width)
    row = (batch_size,)
    return (
        ("observations", torch.uint8, images),
        ("next_observations", torch.uint8, images),
        ("actions", torch.int64, row),
        ("prev_actions", torch.int64, row),
        ("next_prev_actions", torch.int64, row),
        ("returns", torch.float32, row),
        ("discounts", torch.float32, row),
        ("weights", torch.float32, row),
        ("slots", torch.int64, row),
        ("generations", torch.int64, row),
    )


def allocate_batch(batch_size: int, spec: DataSpec, device: torch.device | str = "cpu") -> Batch:
    """An uninitialised batch with the layout that the wire and the shared memory use."""
    fields = {
        name: torch.empty(shape, dtype=dtype, device=device)
        for name, dtype, shape in batch_layout(batch_size, spec)
    }
    return Batch(**fields)
