from __future__ import annotations

import torch
from torch import nn

from common.networks import build_network
from common.specs import DataSpec
from launch.benchmarks.layouts import layout_contenders, weight_gradient


def test_each_layer_is_measured_in_the_layout_that_comes_by_itself_first() -> None:
    contenders = layout_contenders("small", build_network("small", DataSpec()), 2)

    assert list(contenders) == [
        "gradient: small, first convolution, channels apart",
        "gradient: small, first convolution, channels side by side",
        "gradient: small, hidden layer, 2599 columns",
        "gradient: small, hidden layer, 2608 columns",
    ]
    assert len({contender.group for contender in contenders.values()}) == 2


def test_the_gradient_is_found_again_in_every_turn() -> None:
    layer, inputs = nn.Linear(3, 2), torch.rand(4, 3)
    work = weight_gradient(layer, inputs)

    for _ in range(2):
        found = work()
        assert isinstance(found, tuple)
        assert torch.allclose(found[0], inputs.sum(dim=0).expand(2, 3))
