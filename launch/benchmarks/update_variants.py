"""The plain update with one idea each, so that what an idea brings can be told.

Every one learns what `plain_update.py` learns: tests/unit/launch/benchmarks/test_learner.py.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.batch import Batch
from common.networks import PIXEL_SCALE, QuantileNetwork
from launch.benchmarks.plain_update import PlainLearner, scaled, values_of


class OnePass(PlainLearner):
    """The online network sees both states in one pass; the second half is cut off the gradient."""

    def look(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        pixels = scaled(torch.cat((batch.observations, batch.next_observations)))
        actions = torch.cat((batch.prev_actions, batch.next_prev_actions))
        now, after = self.values(self.online, pixels, actions).chunk(2)
        with torch.no_grad():
            target = self.values(
                self.target, scaled(batch.next_observations), batch.next_prev_actions
            )
        return now, after.detach(), target


class ConvertedOnce(PlainLearner):
    """The pixels of the bootstrap states become floats once for both networks."""

    def look(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        now = self.values(self.online, scaled(batch.observations), batch.prev_actions)
        with torch.no_grad():
            after = (scaled(batch.next_observations), batch.next_prev_actions)
            return now, self.values(self.online, *after), self.values(self.target, *after)


class ChannelsLast(PlainLearner):
    """Convolutions with the channels of a pixel side by side."""

    def __init__(self, online: QuantileNetwork, target: QuantileNetwork) -> None:
        for network in (online, target):
            # torch's own stubs know no memory format here.
            network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        super().__init__(online, target)

    def values(self, network: QuantileNetwork, pixels: Tensor, prev_actions: Tensor) -> Tensor:
        pixels = pixels.contiguous(memory_format=torch.channels_last)
        return super().values(network, pixels, prev_actions)


class FusedAdam(PlainLearner):
    """All parameters in one call of the optimizer."""

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.online.parameters(), lr=2.5e-4, eps=1.5e-4, fused=True)


class ScaledWeights(PlainLearner):
    """The first layer's weights are scaled instead of the pixels, which come as they are."""

    def values(self, network: QuantileNetwork, pixels: Tensor, prev_actions: Tensor) -> Tensor:
        first, *others = network.body.children()
        assert isinstance(first, nn.Conv2d)  # noqa: S101 - every body that is measured begins so
        features = functional.conv2d(pixels, first.weight * PIXEL_SCALE, first.bias, first.stride)
        for layer in others:
            features = layer(features)
        return values_of(network, features, prev_actions)

    def look(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        now = self.values(self.online, batch.observations.float(), batch.prev_actions)
        with torch.no_grad():
            after = [
                self.values(network, batch.next_observations.float(), batch.next_prev_actions)
                for network in (self.online, self.target)
            ]
        return now, after[0], after[1]


VARIANTS: dict[str, Callable[[QuantileNetwork, QuantileNetwork], PlainLearner]] = {
    "one pass for both states": OnePass,
    "pixels converted once": ConvertedOnce,
    "channels-last": ChannelsLast,
    "fused optimizer": FusedAdam,
    "pixels scaled by the first layer": ScaledWeights,
}
