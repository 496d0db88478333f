"""What a batch must satisfy before the learner trains on it, whoever sent it.

Values are checked for form and range, not for truth. Without this one malformed answer would end
the learner, or reach its weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from common.batch import Batch, batch_layout
from common.codec import Array
from common.errors import BadMessage
from common.specs import DataSpec


def batch_of_arrays(arrays: Mapping[str, Array], batch_size: int, spec: DataSpec) -> Batch:
    """Copies, because torch does not take read-only memory; `BadMessage` for another layout."""
    tensors = {}
    for name, dtype, shape in batch_layout(batch_size, spec):
        # Compared first: what is not a batch of ours is not copied.
        if arrays[name].shape != shape:
            raise BadMessage("batch_shape", f"{name}: expected {shape}, got {arrays[name].shape}")
        tensors[name] = torch.from_numpy(arrays[name].copy())
        if tensors[name].dtype != dtype:
            raise BadMessage("batch_dtype", f"{name}: expected {dtype}")
    return Batch(**tensors)


def check_values(batch: Batch, spec: DataSpec) -> None:
    """Raises `BadMessage` for an action that does not exist and for a number out of its range."""
    for name in ("actions", "prev_actions", "next_prev_actions"):
        last = spec.num_actions - 1 if name == "actions" else spec.no_action
        if not _within(getattr(batch, name), 0, last):
            raise BadMessage("batch_action", name)
    for name in ("discounts", "weights"):
        if not _within(getattr(batch, name), 0, 1):
            raise BadMessage(f"batch_{name}")
    largest = torch.finfo(torch.float32).max
    if not _within(batch.returns, -largest, largest):
        raise BadMessage("batch_returns")


def _within(values: Tensor, low: float, high: float) -> bool:
    """False where there is a NaN: the least and the greatest of them are NaN too."""
    # Some dozens of numbers: NumPy looks at them without letting another thread run in between.
    array = values.numpy()
    return bool(low <= array.min() and array.max() <= high)
