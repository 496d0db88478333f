"""A network's weights in the form that its layers multiply fastest in, renewed once per update.

In half precision autocast would cast them in every pass of every thread; what it finds cast it
takes as it is. In float32 on a CPU it is the layout of the convolutions that gradients wait for.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from common.networks import QuantileNetwork
from learner.late_gradients import LateGradients
from learner.second_thread import Aside, AtOnce

MULTIPLYING = (nn.Conv2d, nn.Linear)
"""Layers that autocast gives half precision; the others keep theirs."""
Form = Callable[[nn.Module, Tensor], Tensor]
"""What a layer multiplies with instead of a weight or a bias of its own, or that one itself."""


def as_it_is(_layer: nn.Module, weight: Tensor) -> Tensor:
    return weight


def in_precision(dtype: torch.dtype) -> Form:
    return lambda layer, weight: weight.to(dtype) if isinstance(layer, MULTIPLYING) else weight


def side_by_side(layer: nn.Module, weight: Tensor) -> Tensor:
    """Channels of a pixel side by side: a CPU finds gradients of such convolutions faster."""
    is_kernel = isinstance(layer, nn.Conv2d) and weight.dim() > 1
    return weight.contiguous(memory_format=torch.channels_last) if is_kernel else weight


class LayerWeights:
    """A twin of `network` that follows it. What its form leaves as it is, it shares with it."""

    def __init__(self, network: QuantileNetwork, form: Form, aside: Aside | None = None) -> None:
        """Gradients of weights are found by `aside`, or at once."""
        shared = {id(tensor): tensor for tensor in network.parameters()}
        self.network = copy.deepcopy(network, shared)
        self._following: list[Tensor] = []
        self._followed: list[Tensor] = []
        for layer in self.network.modules():
            for name, parameter in layer.named_parameters(recurse=False):
                self._take(layer, name, parameter, form(layer, parameter.detach()))
        self._late = LateGradients(self.network, aside or AtOnce(), list(network.parameters()))

    @torch.no_grad()
    def follow(self) -> None:
        """After the network was written to."""
        if self._following:
            torch._foreach_copy_(self._following, self._followed)

    def differentiate(self, loss: Tensor) -> Callable[[], tuple[Tensor, ...]]:
        """Waits for gradients as the network's own parameters would have them, in their order."""
        return self._late.walk(loss)

    def _take(self, layer: nn.Module, name: str, parameter: nn.Parameter, formed: Tensor) -> None:
        if formed.data_ptr() == parameter.data_ptr():
            return
        setattr(layer, name, nn.Parameter(formed, requires_grad=parameter.requires_grad))
        self._following.append(formed)
        self._followed.append(parameter.detach())
