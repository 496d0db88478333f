"""The network that actors play with and the learner trains: dueling quantile values.

It knows shapes and arithmetic only: no files, no sockets, no optimizer.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.errors import ConfigError
from common.network_bodies import NetworkKind, build_body, count_features
from common.quantiles import greedy_actions
from common.specs import MAX_QUANTILES, DataSpec

STREAM_WIDTHS: dict[NetworkKind, int] = {"small": 256, "nature": 512, "impala": 256}
"""Units of the first dense layer of the value stream, and as many of the advantage stream."""
PIXEL_SCALE = 1.0 / 255.0


class QuantileNetwork(nn.Module):
    """Frames and the previous action in, quantiles of the return of every action out."""

    def __init__(self, kind: NetworkKind, spec: DataSpec, num_quantiles: int) -> None:
        super().__init__()
        self.num_actions = spec.num_actions
        self.num_quantiles = num_quantiles
        width = STREAM_WIDTHS[kind]
        self.body = build_body(kind, spec)
        # One product for the first layer of both streams: half of the outputs belong to each.
        self.hidden = nn.Linear(count_features(self.body, spec) + spec.num_actions, 2 * width)
        self.value = nn.Linear(width, num_quantiles)
        self.advantage = nn.Linear(width, spec.num_actions * num_quantiles)

    def forward(self, observations: Tensor, prev_actions: Tensor) -> Tensor:
        """uint8 [B, stack, H, W], or pixels made of them, and int64 [B] to float32 [B, A, N]."""
        features = self.body(scaled_pixels(observations))
        one_hot = one_hot_actions(prev_actions, self.num_actions).to(features.dtype)
        hidden = functional.relu(self.hidden(torch.cat((features, one_hot), dim=1)))
        for_value, for_advantage = hidden.chunk(2, dim=1)
        # float32 from here: half precision may compute the layers, not the values of a run.
        value: Tensor = self.value(for_value).float().unsqueeze(1)
        advantage: Tensor = self.advantage(for_advantage).float()
        advantage = advantage.view(-1, self.num_actions, self.num_quantiles)
        return value + advantage - advantage.mean(dim=1, keepdim=True)


def scaled_pixels(observations: Tensor) -> Tensor:
    """uint8 to 0 ... 1 in the precision that the first layer computes with.

    Bytes are exact in half precision, so this equals scaling in float32 and rounding afterwards,
    without moving four bytes per pixel. What is scaled already stays as it is.
    """
    if observations.is_floating_point():
        return observations
    kind = observations.device.type
    is_mixed = torch.is_autocast_enabled(kind)
    dtype = torch.get_autocast_dtype(kind) if is_mixed else torch.float32
    return observations.to(dtype).mul_(PIXEL_SCALE)


def one_hot_actions(actions: Tensor, num_actions: int) -> Tensor:
    """int64 [B] to bool [B, A]; an action outside the set, as `spec.no_action`, is all zeros."""
    return actions.unsqueeze(1) == torch.arange(num_actions, device=actions.device)


def build_network(
    kind: NetworkKind,
    spec: DataSpec,
    num_quantiles: int = 32,
    *,
    device: torch.device | str = "cpu",
) -> QuantileNetwork:
    """A freshly initialised network whose tensors are created on `device`."""
    if kind not in STREAM_WIDTHS:
        raise ConfigError(f"network must be one of {', '.join(STREAM_WIDTHS)}, got {kind!r}")
    if not 1 <= num_quantiles <= MAX_QUANTILES:
        raise ConfigError(
            f"num_quantiles must be between 1 and {MAX_QUANTILES}, got {num_quantiles}"
        )
    with torch.device(device):
        return QuantileNetwork(kind, spec, num_quantiles)


@torch.inference_mode()
def infer(network: nn.Module, observations: Tensor, prev_actions: Tensor) -> tuple[Tensor, Tensor]:
    """The path of the actors, a few rows on one core: greedy int64 [B] and quantiles [B, A, N].

    Nothing is recorded for gradients and the results cannot enter a training graph. The caller
    chooses the number of threads, once, at its start.
    """
    quantiles: Tensor = network(observations, prev_actions)
    return greedy_actions(quantiles), quantiles
