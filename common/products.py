"""Products of dense layers, by whichever library multiplies them fastest. No gradients.

For training, whose weights are new in every update; `common/packed_layers.py` is for those that
stay as they are for a while. In float32 torch itself asks MKL, which on processors of AMD uses half
of the width of their registers (docs/decisions/0030).
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

EVEN_COLUMNS = 16
"""Floats of a cache line: oneDNN reads a matrix across its rows twice as fast where each of them
begins at the beginning of one."""


def dense(features: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """What `functional.linear` says: [M, K] times [N, K] transposed, to [M, N]."""
    if _is_for_onednn(features, weight):
        return _multiply(features, weight, bias)
    return functional.linear(features, weight, bias)


def product(left: Tensor, right: Tensor) -> Tensor:
    """[M, K] times [K, N], to [M, N]."""
    if not _is_for_onednn(left, right):
        return left @ right
    across = right.t()
    # Turning it costs as much as multiplying a few rows with it.
    is_turned = right.shape[1] % EVEN_COLUMNS != 0 and left.shape[0] > right.shape[0]
    return _multiply(left, across.contiguous() if is_turned else across, None)


@cache
def has_onednn_products() -> bool:
    """False where torch was built without oneDNN, or a torch to come asks for it otherwise."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call] # torch's own gap
        return False
    left, right = torch.arange(6.0).view(3, 2), torch.arange(8.0).view(2, 4)
    try:
        # In the layouts of an update: row by row with a bias, and both column by column.
        found = _multiply(left, right.t().contiguous(), torch.ones(4))
        turned = _multiply(left.t().contiguous().t(), right.t(), None)
    except (RuntimeError, AttributeError, TypeError):
        return False
    return torch.equal(turned, left @ right) and torch.equal(found, turned + 1.0)


def _multiply(features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(
        _without_gaps(features), _without_gaps(weight), bias, "none", [], ""
    )
    return found


def _without_gaps(matrix: Tensor) -> Tensor:
    """Rows or columns that lie apart would be multiplied a hundred times slower."""
    is_dense = matrix.is_contiguous() or matrix.t().is_contiguous()
    return matrix if is_dense else matrix.contiguous()


def _is_for_onednn(left: Tensor, right: Tensor) -> bool:
    """Half precision goes there by itself."""
    is_float32 = left.dtype is torch.float32 and right.dtype is torch.float32
    return is_float32 and left.device.type == "cpu" and has_onednn_products()
