"""Tensors as arrays for the wire; apart from `common/codec.py` so that it needs no torch."""

from __future__ import annotations

from torch import Tensor

from common.codec import Array


def to_numpy(tensor: Tensor) -> Array:
    """On the CPU without a copy, from another device with one."""
    array: Array = tensor.cpu().numpy()
    return array
