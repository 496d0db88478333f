"""Products by oneDNN or by torch: the same numbers, whatever the layout of the matrices."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from common import products
from common.products import dense, has_onednn_products, product

ROWS, INNER = 5, 24


def matrix(rows: int, columns: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed))


def apart(values: Tensor) -> Tensor:
    """The same numbers in rows with gaps between them."""
    return torch.cat((values, values), dim=1)[:, : values.shape[1]]


def turned(values: Tensor) -> Tensor:
    """The same numbers, column by column."""
    return values.t().contiguous().t()


LAYOUTS = [torch.Tensor.contiguous, apart, turned]


@pytest.fixture(params=[True, False], ids=["oneDNN", "torch"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param and not has_onednn_products():
        pytest.skip("this torch has no oneDNN here")
    if not request.param:
        monkeypatch.setattr(products, "has_onednn_products", lambda: False)


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("columns", [16, 19])
@pytest.mark.parametrize("layout", LAYOUTS, ids=["together", "apart", "turned"])
def test_they_are_the_sums_of_products(layout: type[Tensor], columns: int) -> None:
    left, right = matrix(ROWS, INNER, 1), matrix(INNER, columns, 2)
    bias = matrix(1, columns, 3)[0]
    expected = (left.double() @ right.double()).float()

    torch.testing.assert_close(product(layout(left), layout(right)), expected)
    torch.testing.assert_close(dense(layout(left), layout(right.t())), expected)
    torch.testing.assert_close(dense(layout(left), layout(right.t()), bias), expected + bias)


@pytest.mark.parametrize(
    ("rows", "columns", "is_turned"), [(40, 19, True), (40, 16, False), (2, 19, False)]
)
def test_a_matrix_with_odd_rows_is_turned_where_it_is_read_often(
    monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, is_turned: bool
) -> None:
    left, right = matrix(rows, 3, 1), matrix(3, columns, 2)
    given: list[bool] = []

    def multiply(features: Tensor, weight: Tensor, bias: None) -> Tensor:
        given.append(weight.is_contiguous())
        return torch.nn.functional.linear(features, weight, bias)

    monkeypatch.setattr(products, "has_onednn_products", lambda: True)
    monkeypatch.setattr(products, "_multiply", multiply)

    torch.testing.assert_close(product(left, right), left @ right)
    assert given == [is_turned]


def test_half_precision_is_torchs_own() -> None:
    left, right = (matrix(8, 8, seed).bfloat16() for seed in (1, 2))

    assert torch.equal(product(left, right), left @ right)
    assert torch.equal(dense(left, right), torch.nn.functional.linear(left, right))


def test_a_torch_that_asks_otherwise_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Tensor:
        raise TypeError("_linear_pointwise() takes no such arguments")

    has_onednn_products.cache_clear()
    monkeypatch.setattr(products, "_multiply", refuse)
    found = has_onednn_products()
    has_onednn_products.cache_clear()

    assert not found
