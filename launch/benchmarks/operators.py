"""A part of the benchmark `learner`: which of torch's operators an update spends its time in."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping

import torch

from launch.benchmarks.measure import Row, Work, figure

UPDATES = 10
GROUPS: Mapping[str, tuple[str, ...]] = {
    "convolutions, forward": ("aten::mkldnn_convolution", "aten::_slow_conv2d_forward"),
    "convolutions, backward": ("aten::convolution_backward", "aten::_slow_conv2d_backward"),
    "matrix products": ("aten::addmm", "aten::mm", "mkldnn::_linear_pointwise"),
    "conversions and copies": ("aten::copy_", "aten::_foreach_copy_", "aten::mul_", "aten::cat"),
    "optimizer": (
        "aten::_fused_adam_",
        "Optimizer.step#Adam.step",
        "aten::linalg_vector_norm",
        "aten::_foreach_norm",
        "aten::_foreach_mul_",
        "aten::_foreach_lerp_",
    ),
}
"""What is not named here is `all else`: activations, the loss, and torch's own calls."""


def operator_rows(updates: Mapping[str, Work]) -> list[Row]:
    """Of each update; shares of the time that torch saw, so nothing of the loop around it."""
    return [
        figure(f"operators: {name}: {group}", [share], "share of time", group=f"operators: {name}")
        for name, update in updates.items()
        for group, share in shares_of(update).items()
    ]


def shares_of(update: Work) -> dict[str, float]:
    for _ in range(2):
        update()
    # Read when the first profile begins, which otherwise tells of every one on stderr.
    os.environ.setdefault("KINETO_LOG_LEVEL", "9")
    with torch.autograd.profiler.profile(use_kineto=False) as profile:
        for _ in range(UPDATES):
            update()
    # torch leaves these untyped.
    spent = Counter({event.key: event.self_cpu_time_total for event in profile.key_averages()})
    whole = max(sum(spent.values()), 1e-9)
    shares = {group: sum(spent[key] for key in keys) / whole for group, keys in GROUPS.items()}
    return {**shares, "all else": 1.0 - sum(shares.values())}
