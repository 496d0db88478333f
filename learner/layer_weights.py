"""A network's weights in the precision that its layers multiply in, cast once for all passes.

Autocast would cast them in every pass of every thread; what it finds in half precision it takes as
it is.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from common.networks import QuantileNetwork

MULTIPLYING = (nn.Conv2d, nn.Linear)
"""Layers that autocast gives half precision; the others keep theirs."""


class LayerWeights:
    """`network` itself where all is float32, otherwise a twin that follows it."""

    def __init__(self, network: QuantileNetwork, dtype: torch.dtype | None) -> None:
        self.network = network
        self._originals: list[Tensor] = list(network.parameters())
        if dtype is not None:
            self.network = copy.deepcopy(network)
            for layer in self.network.modules():
                if isinstance(layer, MULTIPLYING):
                    layer.to(dtype)
        self.parameters: list[Tensor] = list(self.network.parameters())
        """In the order of the network's own; gradients are found for these."""
        self._is_twin = dtype is not None

    @torch.no_grad()
    def follow(self) -> None:
        """After the network was written to."""
        if self._is_twin:
            torch._foreach_copy_(self.parameters, self._originals)
