"""How many torch operations a call needs: on CUDA each would be one kernel or more."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from launch.benchmarks.measure import Row, figure

OPERATIONS = "torch operations"


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch's own gap
    """Counts what does work; a view only describes memory and starts nothing."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # the same
        self.count = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        del types
        self.count += not func.is_view
        return func(*args, **(kwargs or {}))


def count_operations(call: Callable[[], object]) -> int:
    """Of one call, everything that it calls included."""
    with torch.no_grad(), _Counter() as counter:
        call()
    return int(counter.count)


def operation_rows(calls: Mapping[str, Callable[[], object]]) -> list[Row]:
    return [figure(name, [count_operations(call)], OPERATIONS) for name, call in calls.items()]
