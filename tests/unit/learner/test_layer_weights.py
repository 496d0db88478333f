"""Twins of a network: what they say, and what their gradients are."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from common.networks import QuantileNetwork, build_network
from common.specs import DataSpec
from learner.layer_weights import Form, LayerWeights, as_it_is, in_precision, side_by_side
from tests.learner_factory import random_batch

SPEC = DataSpec(height=36, width=36, stack=2, num_actions=3, n_step=2)
BATCH = random_batch(4, SPEC)
HALF = in_precision(torch.bfloat16)


def network() -> QuantileNetwork:
    torch.manual_seed(0)
    return build_network("small", SPEC, 4)


def values(of: QuantileNetwork) -> Tensor:
    told: Tensor = of(BATCH.observations, torch.tensor([0, 1, 2, SPEC.no_action]))
    return told


@pytest.mark.parametrize("form", [as_it_is, side_by_side])
def test_a_twin_says_what_the_network_says(form: Form) -> None:
    original = network()

    assert torch.allclose(values(LayerWeights(original, form).network), values(original), atol=1e-6)


@pytest.mark.parametrize("form", [as_it_is, side_by_side])
def test_a_twin_follows_the_network(form: Form) -> None:
    original = network()
    twin = LayerWeights(original, form)
    before = values(twin.network)
    with torch.no_grad():
        for parameter in original.parameters():
            parameter.mul_(1.5)

    twin.follow()

    assert not torch.allclose(before, values(original), atol=1e-6)
    assert torch.allclose(values(twin.network), values(original), atol=1e-6)


def test_only_what_has_another_form_is_kept_twice() -> None:
    original = network()

    twins = {name: LayerWeights(original, form) for name, form in FORMS.items()}

    theirs = {tensor.data_ptr() for tensor in original.parameters()}
    own = {
        name: sum(tensor.data_ptr() not in theirs for tensor in twin.network.parameters())
        for name, twin in twins.items()
    }
    # Two convolutions and three dense layers, each with a bias; their normalisation keeps its own.
    assert own == {"as it is": 0, "side by side": 2, "half precision": 10}


FORMS = {"as it is": as_it_is, "side by side": side_by_side, "half precision": HALF}


def test_convolutions_of_a_twin_lie_side_by_side() -> None:
    twin = LayerWeights(network(), side_by_side).network
    kernels = [layer.weight for layer in twin.modules() if isinstance(layer, nn.Conv2d)]

    assert all(kernel.is_contiguous(memory_format=torch.channels_last) for kernel in kernels)


@pytest.mark.parametrize("form", [as_it_is, side_by_side])
def test_gradients_of_a_twin_are_those_of_the_network(form: Form) -> None:
    original = network()
    twin = LayerWeights(original, form)

    found = twin.differentiate(values(twin.network).square().sum())()
    expected = torch.autograd.grad(values(original).square().sum(), list(original.parameters()))

    for mine, theirs in zip(found, expected, strict=True):
        assert mine.stride() == theirs.stride()
        assert torch.allclose(mine, theirs, atol=1e-4)


def test_gradients_in_half_precision_come_as_the_network_has_them() -> None:
    original = network()
    twin = LayerWeights(original, HALF)

    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = twin.differentiate(values(twin.network).square().sum())()

    wanted = [(tensor.dtype, tensor.shape) for tensor in original.parameters()]
    assert [(tensor.dtype, tensor.shape) for tensor in found] == wanted


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_making_a_twin_draws_no_random_numbers(form: Form) -> None:
    original = network()
    before = torch.get_rng_state()

    LayerWeights(original, form)

    assert torch.equal(torch.get_rng_state(), before)


def test_a_twin_in_half_precision_follows_too() -> None:
    original = network()
    twin = LayerWeights(original, HALF)
    with torch.no_grad():
        original.hidden.weight.mul_(2.0)

    twin.follow()

    assert torch.equal(twin.network.hidden.weight, original.hidden.weight.to(torch.bfloat16))
    assert original.hidden.weight.dtype == torch.float32
