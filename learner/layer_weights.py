"""A network's weights in the form that its layers multiply fastest in, renewed once per update.

In half precision autocast would cast them in every pass of every thread; what it finds cast it
takes as it is. In float32 on a CPU it is their layout that the gradients wait for.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from common.networks import QuantileNetwork

MULTIPLYING = (nn.Conv2d, nn.Linear)
"""Layers that autocast gives half precision; the others keep theirs."""
EVEN_COLUMNS = 16
"""Floats of a cache line: products whose rows begin in the middle of one take up to twice as long,
and a one-hot action behind thousands of features makes every row begin there."""


class LayerWeights:
    """`network` itself where nothing is gained, otherwise a twin that follows it."""

    def __init__(self, network: QuantileNetwork, dtype: torch.dtype | None) -> None:
        is_twin = dtype is not None
        self.network = copy.deepcopy(network) if is_twin else network
        for layer in self.network.modules():
            if is_twin and isinstance(layer, MULTIPLYING):
                layer.to(dtype)
        self.parameters: list[Tensor] = list(self.network.parameters())
        """In the order of the network's own; gradients are found for these."""
        self._followed: list[Tensor] = list(network.parameters()) if is_twin else []
        self._following: list[Tensor] = list(self.parameters) if is_twin else []

    @torch.no_grad()
    def follow(self) -> None:
        """After the network was written to."""
        if self._following:
            torch._foreach_copy_(self._following, self._followed)


class EvenLayers(LayerWeights):
    """A twin whose gradients a CPU finds faster: channels of a pixel side by side, even rows.

    Its hidden layer has columns more, of zeros that stay zeros; their gradients mean nothing.
    """

    def __init__(self, network: QuantileNetwork) -> None:
        super().__init__(network, next(network.parameters()).dtype)
        hidden = self.network.hidden
        columns = even_columns(hidden.in_features)
        # Without the usual draw: random numbers of a run are not for weights that are not used.
        wider: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call] # torch's own gap
            nn.Linear, columns, hidden.out_features
        )
        nn.init.zeros_(wider.weight)
        self.network.hidden = wider
        # torch's own stubs know no memory format here.
        self.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.parameters = list(self.network.parameters())
        self._following = [
            mine.detach().narrow(-1, 0, theirs.shape[-1])
            for mine, theirs in zip(self.parameters, self._followed, strict=True)
        ]
        self.follow()


def even_columns(columns: int) -> int:
    """So many, or up to the next multiple of `EVEN_COLUMNS`."""
    return -(-columns // EVEN_COLUMNS) * EVEN_COLUMNS
