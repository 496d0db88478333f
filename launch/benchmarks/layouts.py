"""A part of the benchmark `learner`: what layouts and libraries cost single layers in float32.

Decisions 0029 and 0030 rest on these: the first convolution, and the three products of the hidden
layer.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.networks import QuantileNetwork
from common.products import dense, product
from launch.benchmarks.measure import Contender, Work


def layout_contenders(name: str, network: QuantileNetwork, batch_size: int) -> dict[str, Contender]:
    """Parts of single layers, each against what comes by itself."""
    first = next(layer for layer in network.body.modules() if isinstance(layer, nn.Conv2d))
    pixels = torch.rand(batch_size, first.in_channels, 84, 84)
    beside = pixels.contiguous(memory_format=torch.channels_last)
    works: dict[str, dict[str, Work]] = {
        "first convolution, gradient": {
            "channels apart": weight_gradient(first, pixels),
            "channels side by side": weight_gradient(first, beside),
        },
        **hidden_layer(network.hidden, batch_size),
    }
    return {
        f"layer: {name}, {part}, {way}": Contender(work=work, group=f"{name}, {part}")
        for part, ways in works.items()
        for way, work in ways.items()
    }


def weight_gradient(layer: nn.Module, inputs: Tensor) -> Work:
    """The backward pass alone, as often as wanted; the inputs need no gradient."""
    outputs: Tensor = layer(inputs)
    # Like the outputs, also in their layout.
    arriving = torch.ones_like(outputs.detach())
    weights = list(layer.parameters())
    return partial(torch.autograd.grad, outputs, weights, arriving, retain_graph=True)


def hidden_layer(layer: nn.Linear, batch_size: int) -> dict[str, dict[str, Work]]:
    """Its three products, as torch multiplies by itself and as an update does."""
    weight, bias = layer.weight.detach(), layer.bias.detach()
    features = torch.rand(batch_size, layer.in_features)
    arriving = torch.rand(batch_size, layer.out_features)
    return {
        "hidden layer": {
            "torch": partial(functional.linear, features, weight, bias),
            "ours": partial(dense, features, weight, bias),
        },
        "hidden layer, gradient of its features": {
            "torch": partial(torch.mm, arriving, weight),
            "ours": partial(product, arriving, weight),
        },
        "hidden layer, gradient of its weight": {
            "torch": partial(torch.mm, arriving.t(), features),
            "ours": partial(product, arriving.t(), features),
        },
    }
