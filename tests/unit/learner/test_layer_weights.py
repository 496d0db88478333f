"""Twins of a network: what they say, and what their gradients are."""

from __future__ import annotations

import torch
from torch import Tensor

from common.networks import QuantileNetwork, build_network
from common.specs import DataSpec
from learner.layer_weights import EVEN_COLUMNS, EvenLayers, LayerWeights
from tests.learner_factory import random_batch

SPEC = DataSpec(height=36, width=36, stack=2, num_actions=3, n_step=2)
BATCH = random_batch(4, SPEC)


def network() -> QuantileNetwork:
    torch.manual_seed(0)
    return build_network("small", SPEC, 4)


def values(of: QuantileNetwork) -> Tensor:
    """One of the rows has no previous action, for which a spare column must say nothing."""
    prev_actions = torch.tensor([0, 1, 2, SPEC.no_action])
    told: Tensor = of(BATCH.observations, prev_actions)
    return told


def test_even_layers_say_what_the_network_says() -> None:
    original = network()
    twin = EvenLayers(original)

    assert twin.network.hidden.in_features % EVEN_COLUMNS == 0
    assert torch.allclose(values(twin.network), values(original), atol=1e-6)


def test_even_layers_follow_the_network() -> None:
    original = network()
    twin = EvenLayers(original)
    with torch.no_grad():
        for parameter in original.parameters():
            parameter.mul_(1.5)

    before = values(twin.network)
    twin.follow()

    assert not torch.allclose(before, values(original), atol=1e-6)
    assert torch.allclose(values(twin.network), values(original), atol=1e-6)


def test_gradients_of_even_layers_are_those_of_the_network() -> None:
    original = network()
    twin = EvenLayers(original)

    found = torch.autograd.grad(values(twin.network).square().sum(), twin.parameters)
    expected = torch.autograd.grad(values(original).square().sum(), list(original.parameters()))

    for mine, theirs in zip(found, expected, strict=True):
        assert torch.allclose(mine.narrow(-1, 0, theirs.shape[-1]), theirs, atol=1e-4)


def test_making_a_twin_draws_no_random_numbers() -> None:
    original = network()
    before = torch.get_rng_state()

    EvenLayers(original)

    assert torch.equal(torch.get_rng_state(), before)


def test_a_twin_in_half_precision_follows_too() -> None:
    original = network()
    twin = LayerWeights(original, torch.bfloat16)
    with torch.no_grad():
        original.hidden.weight.mul_(2.0)

    twin.follow()

    assert torch.equal(twin.network.hidden.weight, original.hidden.weight.to(torch.bfloat16))
    assert original.hidden.weight.dtype == torch.float32
