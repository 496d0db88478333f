"""Priorities of all slots with exact partial sums, on any torch device.

Sums are 64-bit fixed point, not floating point: integer addition is exact in any order, so sums
cannot drift, CPU and CUDA agree bit for bit, and a leaf of priority 0 is never drawn. Nothing
here waits for the device except `drift`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from common.errors import ConfigError
from common.replay_sizes import FAN_OUT, FAN_OUT_BITS, tree_level_sizes

QUANTUM = 2.0**-20
"""One unit of the fixed point; a positive priority is rounded up to at least this."""
_SUM_LIMIT_QUANTA = 2**62


class SumTree:
    """A 16-ary tree of sums with a wide root: two levels and the root up to 2,097,152 leaves."""

    def __init__(self, num_leaves: int, *, device: torch.device | str = "cpu") -> None:
        if num_leaves < 1:
            raise ConfigError(f"a sum tree needs at least one leaf, got {num_leaves}")
        self.num_leaves = num_leaves
        self.max_priority = _SUM_LIMIT_QUANTA // num_leaves * QUANTUM
        """Larger priorities are cut to this, so that no sum overflows."""
        self._levels = [
            torch.zeros(size, dtype=torch.int64, device=device)
            for size in tree_level_sizes(num_leaves)
        ]

    @property
    def device(self) -> torch.device:
        return self._levels[0].device

    def set(self, leaves: Tensor, priorities: Tensor) -> None:
        """Replace priorities; of equal leaves the last one counts. 11 + 2 levels kernels.

        `leaves` int64 [K] within range, `priorities` [K] finite and not negative: the caller
        has checked both, because a check here would wait for the device.
        """
        if len(leaves) == 0:
            return
        ordered, order = torch.sort(leaves, stable=True)
        quanta = self._to_quanta(priorities).index_select(0, order)
        delta = quanta - self._levels[0].index_select(0, ordered)
        followers = len(leaves) - 1
        is_last = ordered.narrow(0, 1, followers) != ordered.narrow(0, 0, followers)
        delta.narrow(0, 0, followers).mul_(is_last)
        self._add(ordered, delta)

    def set_distinct(self, leaves: Tensor, priorities: Tensor) -> None:
        """The same for leaves that are all different, in any order. 7 + 2 levels kernels."""
        delta = self._to_quanta(priorities) - self._levels[0].index_select(0, leaves)
        self._add(leaves, delta)

    def _to_quanta(self, priorities: Tensor) -> Tensor:
        # Rounding up keeps every positive priority positive.
        capped = priorities.to(torch.float64).clamp(0.0, self.max_priority)
        return capped.mul_(1.0 / QUANTUM).ceil_().to(torch.int64)

    def _add(self, leaves: Tensor, delta: Tensor) -> None:
        # Integer additions commute, so the atomic additions of CUDA are deterministic too.
        nodes = leaves
        for depth, level in enumerate(self._levels):
            if depth > 0:
                nodes = nodes >> FAN_OUT_BITS
            level.index_add_(0, nodes, delta)

    def get(self, leaves: Tensor) -> Tensor:
        """Float64 [K] as stored, that is rounded up to a multiple of `QUANTUM`. 3 kernels."""
        return _to_priorities(self._levels[0].index_select(0, leaves))

    def total(self) -> Tensor:
        """Float64 scalar tensor on the device. 3 kernels."""
        return _to_priorities(self._levels[-1].sum())

    def sample(self, uniforms: Tensor) -> Tensor:
        """Leaves, int64 [K], for float64 positions in [0, 1) of the total. 9 + 9 levels kernels.

        Increasing positions give non-decreasing leaves. The total must not be 0.
        """
        root = self._levels[-1]
        sums = root.cumsum(0)
        total = sums.select(0, -1)
        # uniform * total may round up to the total itself, which belongs to no leaf.
        rest = torch.minimum((uniforms * total).to(torch.int64), total - 1)
        # The first sum above `rest`: a node of sum 0 repeats the sum before it and is passed over.
        node = torch.searchsorted(sums, rest, right=True)
        rest = rest - sums.index_select(0, node) + root.index_select(0, node)
        for level in reversed(self._levels[:-1]):
            children = level.view(-1, FAN_OUT).index_select(0, node)
            sums = children.cumsum(1)
            child = torch.searchsorted(sums, rest.unsqueeze(1), right=True)
            before = sums.gather(1, child) - children.gather(1, child)
            rest = rest - before.squeeze(1)
            node = (node << FAN_OUT_BITS) + child.squeeze(1)
        return node

    def leaves(self) -> Tensor:
        """Float64 [num_leaves], a copy of all priorities. 2 kernels."""
        return _to_priorities(self._levels[0].narrow(0, 0, self.num_leaves))

    def quanta(self) -> Tensor:
        """Int64 [num_leaves], a copy of all priorities as they are stored. 1 kernel."""
        return self._levels[0].narrow(0, 0, self.num_leaves).clone()

    def set_quanta(self, quanta: Tensor) -> None:
        """Replace all priorities by a copy that was taken before."""
        self._levels[0].narrow(0, 0, self.num_leaves).copy_(quanta)
        self.rebuild()

    def leaves_every(self, stride: int) -> Tensor:
        """Every stride-th priority: a cheap sample for statistics."""
        return self.get(torch.arange(0, self.num_leaves, stride, device=self.device))

    def drift(self) -> float:
        """Largest difference between a node and the sum of its children; 0 unless corrupted."""
        worst = 0
        for below, above in zip(self._levels, self._levels[1:], strict=False):
            difference = (_sums_of(below, len(above)) - above).abs().max()
            worst = max(worst, int(difference))
        return worst * QUANTUM

    def rebuild(self) -> None:
        """Compute all sums from the leaves again."""
        for below, above in zip(self._levels, self._levels[1:], strict=False):
            above.copy_(_sums_of(below, len(above)))


def _sums_of(level: Tensor, num_parents: int) -> Tensor:
    sums = level.view(-1, FAN_OUT).sum(1)
    return torch.nn.functional.pad(sums, (0, num_parents - len(sums)))


def _to_priorities(quanta: Tensor) -> Tensor:
    # An integer tensor times a Python float would be float32.
    return quanta.to(torch.float64).mul_(QUANTUM)
