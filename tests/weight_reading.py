"""Broadcast weights as new tensors, for tests that look at them."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from common.codec import Buffer
from common.weights import WeightHeader, open_weights


def decode_weights(
    frame: Buffer, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[WeightHeader, dict[str, Tensor]]:
    tensors = {name: torch.zeros(shape) for name, shape in shapes.items()}
    opened = open_weights(frame)
    opened.load_into(tensors)
    return opened.header, tensors
