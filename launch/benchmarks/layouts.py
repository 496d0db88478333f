"""A part of the benchmark `learner`: what the layout of weights costs two gradients in float32.

Decision 0029 rests on these: the first convolution, and a hidden layer whose rows are not even.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

import torch
from torch import Tensor, nn

from common.networks import QuantileNetwork
from launch.benchmarks.measure import Contender, Work


def layout_contenders(name: str, network: QuantileNetwork, batch_size: int) -> dict[str, Contender]:
    """Gradients of the weights of single layers, each against the layout that comes by itself."""
    first = next(layer for layer in network.body.modules() if isinstance(layer, nn.Conv2d))
    pixels = torch.rand(batch_size, first.in_channels, 84, 84)
    beside = pixels.contiguous(memory_format=torch.channels_last)
    uneven = network.hidden.in_features
    even = import_module("learner.layer_weights").even_columns(uneven)
    works: dict[str, dict[str, Work]] = {
        "first convolution": {
            "channels apart": weight_gradient(first, pixels),
            "channels side by side": weight_gradient(first, beside),
        },
        "hidden layer": {
            f"{columns} columns": weight_gradient(
                nn.Linear(columns, network.hidden.out_features), torch.rand(batch_size, columns)
            )
            for columns in (uneven, even)
        },
    }
    return {
        f"gradient: {name}, {layer}, {way}": Contender(work=work, group=f"{name}, {layer}")
        for layer, ways in works.items()
        for way, work in ways.items()
    }


def weight_gradient(layer: nn.Module, inputs: Tensor) -> Work:
    """The backward pass alone, as often as wanted; the inputs need no gradient."""
    outputs: Tensor = layer(inputs)
    # Like the outputs, also in their layout.
    arriving = torch.ones_like(outputs.detach())
    weights = list(layer.parameters())
    return partial(torch.autograd.grad, outputs, weights, arriving, retain_graph=True)
