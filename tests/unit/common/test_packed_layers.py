"""Packed layers: what the plain ones say, and the plain ones where torch has no packed ones."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from common.network_bodies import ResidualBlock
from common.packed_layers import (
    PackedConvolution,
    PackedDense,
    PlainDense,
    has_packed_layers,
    pack_convolutions,
)

ROWS, INPUTS, OUTPUTS = 3, 10, 7


def some(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kind", [PackedDense, PlainDense])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_dense_layer_adds_a_bias_or_one_for_each_row(
    kind: type[PackedDense | PlainDense], dtype: torch.dtype
) -> None:
    if kind is PackedDense and not has_packed_layers(dtype):
        pytest.skip("this processor or this torch has no packed layers in this precision")
    layer = kind(some(OUTPUTS, INPUTS).to(dtype))
    layer.renew()
    features, rows = some(ROWS, INPUTS, seed=1).to(dtype), some(ROWS, OUTPUTS, seed=2).to(dtype)

    products = (features.double() @ layer.weight.double().t()).float()
    near = 1e-5 if dtype is torch.float32 else 5e-2
    for added in (rows, rows[0]):
        found = layer(features, added).float()
        torch.testing.assert_close(found, products + added, rtol=near, atol=near)


def test_a_packed_layer_has_its_new_weight_once_it_is_renewed() -> None:
    layer = PackedDense(some(OUTPUTS, INPUTS))
    layer.renew()
    features, bias = some(ROWS, INPUTS, seed=1), torch.zeros(OUTPUTS)
    before = layer(features, bias)

    layer.weight.mul_(2.0)
    not_yet = layer(features, bias)
    layer.renew()

    assert torch.equal(not_yet, before)
    torch.testing.assert_close(layer(features, bias), 2.0 * before)


BODIES: dict[str, tuple[nn.Module, list[str]]] = {
    "relu behind": (nn.Sequential(nn.Conv2d(2, 3, 3, 2), nn.ReLU(), nn.Flatten()), ["relu"]),
    "relu before": (nn.Sequential(nn.ReLU(), nn.Conv2d(2, 3, 3, padding=1)), ["none"]),
    "another behind": (nn.Sequential(nn.Conv2d(2, 3, 3), nn.MaxPool2d(2)), ["none"]),
    "no sequence": (ResidualBlock(2), ["none", "none"]),
}


@pytest.mark.parametrize("name", BODIES)
@torch.no_grad()
def test_packed_convolutions_say_what_the_plain_ones_say(name: str) -> None:
    plain, activations = BODIES[name]
    body = copy.deepcopy(plain)

    packed = pack_convolutions(body, torch.float32)
    for layer in packed:
        layer.renew()

    assert [layer._activation for layer in packed] == activations
    assert not [layer for layer in body.children() if isinstance(layer, nn.Conv2d)]
    pictures = some(ROWS, 2, 9, 9, seed=1)
    torch.testing.assert_close(body(pictures), plain(pictures), rtol=1e-4, atol=1e-5)


def test_a_padding_in_words_is_refused() -> None:
    with pytest.raises(TypeError, match="same"):
        PackedConvolution(nn.Conv2d(1, 1, 3, padding="same"), has_relu=False)


@pytest.mark.parametrize("error", [RuntimeError, AttributeError, TypeError])
def test_a_torch_that_asks_otherwise_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def refuse(_: object) -> None:
        raise error("no such operator")

    has_packed_layers.cache_clear()
    monkeypatch.setattr(PackedConvolution, "renew", refuse)
    found = has_packed_layers(torch.float32)
    has_packed_layers.cache_clear()

    assert not found


def test_a_torch_that_multiplies_otherwise_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    has_packed_layers.cache_clear()
    monkeypatch.setattr(PackedDense, "__call__", lambda _, features, added: features + added)
    found = has_packed_layers(torch.float32)
    has_packed_layers.cache_clear()

    assert not found
