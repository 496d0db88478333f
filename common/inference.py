"""The network in the form that actors evaluate, prepared once per version of the weights.

What depends on the weights alone is computed when they come: the first layer scales the pixels, the
previous action chooses a row of biases, value and advantages are one product, and weights lie as
they are multiplied with (`common/packed_layers.py`).
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.networks import PIXEL_SCALE, QuantileNetwork
from common.packed_layers import dense_layer, pack_convolutions
from common.quantiles import greedy_actions


class PreparedNetwork:
    """Answers as `network` does; call `refresh` when its weights have changed."""

    def __init__(self, network: QuantileNetwork, dtype: torch.dtype = torch.float32) -> None:
        """Half precision only where the CPU computes with it; values come out in float32."""
        self._network = network
        self._dtype = dtype
        self._body = copy.deepcopy(network.body).to(dtype).eval()
        self._body_tensors = list(
            zip(self._body.state_dict().values(), network.body.state_dict().values(), strict=True)
        )
        self._first = _first_layer(self._body)
        self._convolutions = pack_convolutions(self._body, dtype)
        width = network.hidden.out_features
        self._features = network.hidden.in_features - network.num_actions
        self._hidden = dense_layer(width, self._features, dtype)
        outputs = network.num_actions * network.num_quantiles
        self._heads = dense_layer(outputs, width, dtype)
        self.refresh()

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over the weights that the network has now.

        The large layers go into memory that is there: asking the system for new pages would cost
        an actor more than the copies do.
        """
        network = self._network
        for ours, theirs in self._body_tensors:
            ours.copy_(theirs)
        self._first.weight.copy_(_first_layer(network.body).weight * PIXEL_SCALE)
        by_features, by_action = network.hidden.weight.tensor_split([self._features], dim=1)
        # The last row is for no action, whose one-hot encoding is all zeros.
        by_action = functional.pad(by_action.t(), (0, 0, 0, 1))
        self._hidden.weight.copy_(by_features)
        self._hidden_bias = (by_action + network.hidden.bias).to(self._dtype)
        self._join_streams()
        for convolution in self._convolutions:
            convolution.renew()
        self._hidden.renew()
        self._heads.renew()

    @torch.inference_mode()
    def infer(self, observations: Tensor, prev_actions: Tensor) -> tuple[Tensor, Tensor]:
        """uint8 [B, stack, H, W] and int64 [B] to greedy int64 [B] and quantiles [B, A, N]."""
        network = self._network
        features = self._body(observations.to(self._dtype))
        bias = self._hidden_bias.index_select(0, prev_actions.clamp(max=network.num_actions))
        hidden = self._hidden(features, bias).relu_()
        quantiles = self._heads(hidden, self._heads_bias).float()
        quantiles = quantiles.view(-1, network.num_actions, network.num_quantiles)
        return greedy_actions(quantiles), quantiles

    def _join_streams(self) -> None:
        """Value plus advantage minus the mean advantage, as one weight and one bias."""
        network = self._network
        shape = (network.num_actions, network.num_quantiles, -1)
        by_value, by_advantage = self._heads.weight.view(shape).chunk(2, dim=2)
        advantage = network.advantage.weight.view(shape)
        by_value.copy_(network.value.weight)
        by_advantage.copy_(advantage - advantage.mean(dim=0))
        advantage_bias = network.advantage.bias.view(shape[:2])
        bias = network.value.bias + advantage_bias - advantage_bias.mean(dim=0)
        self._heads_bias = bias.flatten().to(self._dtype)


def _first_layer(body: nn.Module) -> nn.Conv2d:
    return next(layer for layer in body.modules() if isinstance(layer, nn.Conv2d))
