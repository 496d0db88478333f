from __future__ import annotations

import torch
from torch import nn

from common.networks import build_network
from common.specs import DataSpec
from launch.benchmarks.layouts import hidden_layer, layout_contenders, weight_gradient


def test_what_comes_by_itself_is_measured_first() -> None:
    contenders = layout_contenders("small", build_network("small", DataSpec()), 2)

    assert list(contenders) == [
        "layer: small, first convolution, gradient, channels apart",
        "layer: small, first convolution, gradient, channels side by side",
        "layer: small, hidden layer, torch",
        "layer: small, hidden layer, ours",
        "layer: small, hidden layer, gradient of its features, torch",
        "layer: small, hidden layer, gradient of its features, ours",
        "layer: small, hidden layer, gradient of its weight, torch",
        "layer: small, hidden layer, gradient of its weight, ours",
    ]
    assert len({contender.group for contender in contenders.values()}) == 4


def test_both_ways_of_the_hidden_layer_find_the_same() -> None:
    for ways in hidden_layer(nn.Linear(19, 8), 5).values():
        found = [work() for work in ways.values()]
        torch.testing.assert_close(*found)


def test_the_gradient_is_found_again_in_every_turn() -> None:
    layer, inputs = nn.Linear(3, 2), torch.rand(4, 3)
    work = weight_gradient(layer, inputs)

    for _ in range(2):
        found = work()
        assert isinstance(found, tuple)
        assert torch.allclose(found[0], inputs.sum(dim=0).expand(2, 3))
