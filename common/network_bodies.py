"""Convolutional bodies: scaled frames [B, stack, H, W] in, flat features [B, F] out."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, assert_never

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.specs import DataSpec

NetworkKind = Literal["small", "nature", "impala"]
MIN_SIDE_FOR_LARGE_KERNELS = 36
"""The smallest side that 8x8/4, 4x4/2, 3x3/1 without padding reduce to one pixel."""
ConvShape = tuple[int, int, int]
"""Output channels, kernel side, stride."""

SMALL_LAYERS: tuple[ConvShape, ...] = ((16, 8, 4), (32, 4, 2))
NATURE_LAYERS: tuple[ConvShape, ...] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
IMPALA_CHANNELS = (16, 32, 32)


def build_body(kind: NetworkKind, spec: DataSpec) -> nn.Module:
    match kind:
        case "small":
            return small_body(spec)
        case "nature":
            return nn.Sequential(*_convolutions(NATURE_LAYERS, spec), nn.ReLU(), nn.Flatten())
        case "impala":
            return ImpalaBody(spec.stack)
        case _:
            assert_never(kind)


def small_body(spec: DataSpec) -> nn.Module:
    """Two convolutions; the normalisation keeps evaluation steady where plain features swing."""
    layers = nn.Sequential(*_convolutions(SMALL_LAYERS, spec), nn.Flatten())
    layers.append(nn.LayerNorm(count_features(layers, spec)))
    return layers.append(nn.ReLU())


def count_features(body: nn.Module, spec: DataSpec) -> int:
    """The width of the flat output, found by one pass of one black observation."""
    device = next(body.parameters()).device
    with torch.no_grad():
        black = torch.zeros(1, spec.stack, spec.height, spec.width, device=device)
        return int(body(black).shape[1])


def _convolutions(shapes: tuple[ConvShape, ...], spec: DataSpec) -> list[nn.Module]:
    """Convolutions with a ReLU between them.

    Frames with a side under 36 pixels are too small for the published kernels: each layer then is
    3x3 with padding 1 and a stride of at most 2, which works for every size.
    """
    is_small_frame = min(spec.height, spec.width) < MIN_SIDE_FOR_LARGE_KERNELS
    modules: list[nn.Module] = []
    in_channels = spec.stack
    for out_channels, kernel, stride in shapes:
        if is_small_frame:
            conv = nn.Conv2d(in_channels, out_channels, 3, min(stride, 2), padding=1)
        else:
            conv = nn.Conv2d(in_channels, out_channels, kernel, stride)
        modules += [conv, nn.ReLU()]
        in_channels = out_channels
    return modules[:-1]


class ImpalaBody(nn.Module):
    """The 15-layer residual body of IMPALA (Espeholt et al. 2018, figure 3)."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        widths = (in_channels, *IMPALA_CHANNELS)
        self.sections = nn.Sequential(
            *(_section(before, after) for before, after in pairwise(widths))
        )

    def forward(self, frames: Tensor) -> Tensor:
        features: Tensor = self.sections(frames)
        return functional.relu(features).flatten(1)


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut; the activation comes before each convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, features: Tensor) -> Tensor:
        inner = self.first(functional.relu(features))
        change: Tensor = self.second(functional.relu(inner))
        return features + change


def _section(in_channels: int, out_channels: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, 3, padding=1),
        nn.MaxPool2d(3, stride=2, padding=1),
        ResidualBlock(out_channels),
        ResidualBlock(out_channels),
    )
