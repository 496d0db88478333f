from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from common.products import product
from launch.benchmarks.operators import operator_rows, shares_of


@pytest.mark.parametrize("multiply", [torch.mm, product])
def test_a_product_of_matrices_is_found_among_the_operators(
    multiply: Callable[[Tensor, Tensor], Tensor],
) -> None:
    left, right = torch.randn(256, 256), torch.randn(256, 256)

    shares = shares_of(lambda: multiply(left, right))

    assert shares["matrix products"] > 0.8
    assert sum(shares.values()) == pytest.approx(1.0)


def test_work_of_no_named_operator_is_all_else() -> None:
    numbers = torch.randn(100_000)

    rows = operator_rows({"sine": numbers.sin})

    assert {row.group for row in rows} == {"operators: sine"}
    by_name = {row.contender: row.median for row in rows}
    assert by_name["operators: sine: all else"] > 0.8
