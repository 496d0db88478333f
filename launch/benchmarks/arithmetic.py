"""How near an update is to what the processor can multiply: the limit that no tuning passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from torch.utils.flop_counter import FlopCounterMode

from common.products import has_onednn_products
from launch.benchmarks.measure import Contender, Row, Work, figure

SIDE = 1_024
FLOPS_PER_MFLOP = 1_000_000
GROUP = "arithmetic"
Precision = Literal["off", "bfloat16"]
PRECISIONS: Mapping[Precision, str] = {"off": "float32", "bfloat16": "bfloat16"}
"""Values of `--mixed-precision`, and what is multiplied then."""


def count_mflop(work: Work) -> int:
    """Floating-point operations of products and convolutions in one call, in millions."""
    with FlopCounterMode(display=False, custom_mapping=_more_operators()) as counter:
        work()
    return int(counter.get_total_flops()) // FLOPS_PER_MFLOP


def _more_operators() -> dict[Any, Callable[..., int]]:
    """What torch's counter does not know of our operators."""
    if not has_onednn_products():
        return {}
    return {torch.ops.mkldnn._linear_pointwise: _flops_of_dense}


def _flops_of_dense(
    features: Sequence[int], weight: Sequence[int], *_: object, **__: object
) -> int:
    return 2 * math.prod(features) * weight[0]


def product_contenders(precisions: Sequence[Precision]) -> dict[str, Contender]:
    """One large product of matrices each: as fast as torch multiplies here."""
    return {
        f"arithmetic: {SIDE} x {SIDE} matrices, {PRECISIONS[precision]}": Contender(
            work=_product(getattr(torch, PRECISIONS[precision])),
            unit="MFLOP",
            units_per_turn=2 * SIDE**3 // FLOPS_PER_MFLOP,
            is_rate=True,
            group=f"{GROUP} {precision}",
        )
        for precision in precisions
    }


def update_contenders(
    networks: Sequence[str],
    precisions: Sequence[Precision],
    make: Callable[[str, Precision], Work],
) -> tuple[dict[str, Contender], list[Row]]:
    """Updates in the same unit, and how much work each of them is."""
    contenders, rows = {}, []
    for network in networks:
        mflop = count_mflop(make(network, "off"))
        rows.append(figure(f"arithmetic: one update, {network}", [float(mflop)], "MFLOP"))
        for precision in precisions:
            name = f"arithmetic: update, {network}, {PRECISIONS[precision]}"
            contenders[name] = Contender(
                work=make(network, precision),
                unit="MFLOP",
                units_per_turn=mflop,
                is_rate=True,
                group=f"{GROUP} {precision}",
            )
    return contenders, rows


def _product(dtype: torch.dtype) -> Work:
    left, right = (torch.randn(SIDE, SIDE).to(dtype) for _ in range(2))
    return lambda: left @ right
