"""Tensors as arrays for the wire; apart from `common/codec.py` so that it needs no torch."""

from __future__ import annotations

from torch import Tensor

from common.codec import Array


def to_numpy(tensor: Tensor) -> Array:
    """On the CPU without a copy, from another device with one."""
    # `cpu` lets go of the interpreter even where it does nothing, and another thread takes it.
    array: Array = (tensor if tensor.is_cpu else tensor.cpu()).numpy()
    return array
