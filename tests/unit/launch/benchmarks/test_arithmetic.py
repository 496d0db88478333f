from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from common import products
from launch.benchmarks.arithmetic import SIDE, count_mflop, product_contenders, update_contenders
from launch.benchmarks.measure import Work


def product(rows: int, multiply: Callable[[Tensor, Tensor], Tensor] = torch.mm) -> Work:
    left, right = torch.ones(rows, 1_000), torch.ones(1_000, 1_000)
    return lambda: multiply(left, right)


@pytest.mark.parametrize("multiply", [torch.mm, products.product, products.dense])
def test_operations_of_a_product_are_counted(multiply: Callable[[Tensor, Tensor], Tensor]) -> None:
    assert count_mflop(product(500, multiply)) == 2 * 500


def test_every_update_is_told_in_operations_and_compared_with_its_precision() -> None:
    sizes = {"small": 100, "nature": 300}

    contenders, rows = update_contenders(
        list(sizes), ["off", "bfloat16"], lambda network, _precision: product(sizes[network])
    )

    assert [row.median for row in rows] == [200.0, 600.0]
    groups = {contender.group for contender in contenders.values()}
    assert groups == {one.group for one in product_contenders(["off", "bfloat16"]).values()}
    assert len(contenders) == 4


def test_an_update_counts_its_own_operations_in_whatever_precision() -> None:
    """Or the rate of a row would be that of another network."""
    sizes = {"small": 100, "nature": 300}

    contenders, _ = update_contenders(
        list(sizes), ["off", "bfloat16"], lambda network, _precision: product(sizes[network])
    )

    assert {name: one.units_per_turn for name, one in contenders.items()} == {
        "arithmetic: update, small, float32": 200,
        "arithmetic: update, small, bfloat16": 200,
        "arithmetic: update, nature, float32": 600,
        "arithmetic: update, nature, bfloat16": 600,
    }
    assert all(one.is_rate for one in contenders.values())


def test_a_product_is_of_the_precision_that_its_row_names() -> None:
    contenders = product_contenders(["off", "bfloat16"])

    results = {name.rpartition(", ")[2]: one.work() for name, one in contenders.items()}

    assert {name: getattr(result, "dtype", None) for name, result in results.items()} == {
        "float32": torch.float32,
        "bfloat16": torch.bfloat16,
    }


def test_a_product_counts_two_operations_per_pair() -> None:
    (contender,) = product_contenders(["off"]).values()

    assert contender.units_per_turn == 2 * SIDE**3 // 1_000_000
