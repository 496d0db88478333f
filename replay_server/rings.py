"""Rings of slots on the device: ranges that may wrap, and writing into them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRange:
    """Consecutive step slots; the ring may wrap inside."""

    first: int
    length: int
    ring: int

    def indices(self) -> npt.NDArray[np.int64]:
        return np.arange(self.first, self.first + self.length, dtype=np.int64) % self.ring


def ring_parts(ring: Tensor, first: int, length: int) -> list[tuple[Tensor, int]]:
    """Views of the ring, each with the offset of its values; two when the ring wraps."""
    before_wrap = min(length, len(ring) - first)
    parts = [(ring.narrow(0, first, before_wrap), 0)]
    if before_wrap < length:
        parts.append((ring.narrow(0, 0, length - before_wrap), before_wrap))
    return parts


def ring_write(ring: Tensor, first: int, values: npt.NDArray[np.generic]) -> None:
    source = host_tensor(values)
    for part, offset in ring_parts(ring, first, len(values)):
        whole = len(part) == len(source)
        part.copy_(source if whole else source.narrow(0, offset, len(part)))


def host_tensor(array: npt.NDArray[np.generic]) -> Tensor:
    """A CPU tensor that shares the array's memory, or a copy where it may not be written to."""
    # torch warns about read-only memory, which is what arrays over received bytes have.
    return torch.from_numpy(array if array.flags.writeable else array.copy())
