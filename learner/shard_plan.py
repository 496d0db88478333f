"""How a batch is divided over several replay servers, and weighted as one: pure arithmetic.

An item of priority p in a server that was planned with mass m and had mass M when it drew is drawn
with a chance in proportion to m p / M, so that is its priority in the whole. Where nothing changed
in between, m = M, and this is one big buffer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate


def apportion(total: int, weights: Sequence[float], offset: float) -> list[int]:
    """Whole shares of `total` in proportion to the weights, each less than 1 off.

    An offset that is drawn evenly from [0, 1) makes every share right on average. A weight of 0
    gets nothing; at least one must be above 0.
    """
    whole = math.fsum(weights)
    last = max(index for index, weight in enumerate(weights) if weight > 0)
    marks = [
        total if index >= last else min(math.floor(total * (end / whole) + offset), total)
        for index, end in enumerate(accumulate(weights))
    ]
    return [mark - before for mark, before in zip(marks, [0, *marks], strict=False)]


def joint_priority(priority: float, planned_mass: float, drawn_mass: float) -> float:
    """A priority of one server as one of all of them together."""
    return priority / drawn_mass * planned_mass


def joint_factors(least_priorities: Sequence[float], beta: float) -> list[float]:
    """Factors on the weights of the parts: each is relative to the least priority of its own."""
    least = min(least_priorities)
    return [(least / own) ** beta for own in least_priorities]
