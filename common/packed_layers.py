"""Layers with weights as oneDNN wants them, put in order once instead of in every pass.

For passes of a few rows without gradients. With `common/products.py` the only user of torch's
operators of oneDNN, which have no public names: they are tried once, and where one is not there or
asks for other arguments the plain layers are used.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional


class DenseLayer(Protocol):
    weight: Tensor
    """[N, K]; call `renew` when it was written to."""

    def renew(self) -> None: ...

    def __call__(self, features: Tensor, added: Tensor) -> Tensor:
        """[B, K] to [B, N]; `added` is a bias [N], or one for each row."""
        ...


def dense_layer(outputs: int, inputs: int, dtype: torch.dtype) -> DenseLayer:
    """Its weight is not set yet."""
    weight = torch.empty(outputs, inputs, dtype=dtype)
    return PackedDense(weight) if has_packed_layers(dtype) else PlainDense(weight)


class PlainDense:
    def __init__(self, weight: Tensor) -> None:
        self.weight = weight

    def renew(self) -> None:
        """The weight itself is multiplied with."""

    def __call__(self, features: Tensor, added: Tensor) -> Tensor:
        return torch.addmm(added, features, self.weight.t())


class PackedDense:
    def __init__(self, weight: Tensor) -> None:
        self.weight = weight
        self._packed = weight

    def renew(self) -> None:
        # The old one first: its memory is taken again, where new pages would cost more.
        self._packed = self.weight
        self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight)

    def __call__(self, features: Tensor, added: Tensor) -> Tensor:
        found: Tensor
        if added.dim() == 1:
            found = torch.ops.mkldnn._linear_pointwise(
                features, self._packed, added, "none", [], ""
            )
        else:
            found = torch.ops.mkldnn._linear_pointwise.binary(
                features, added, self._packed, None, "add"
            )
        return found


class PackedConvolution(nn.Module):
    """A convolution with the weights of `plain`, and the ReLU behind it if there is one."""

    def __init__(self, plain: nn.Conv2d, *, has_relu: bool) -> None:
        super().__init__()
        self.plain = plain
        self._shape = (_pair(plain.padding), list(plain.stride), list(plain.dilation), plain.groups)
        self._activation = "relu" if has_relu else "none"
        self._packed = plain.weight.detach()

    def renew(self) -> None:
        self._packed = torch.ops.mkldnn._reorder_convolution_weight(
            self.plain.weight.detach(), *self._shape
        )

    def forward(self, features: Tensor) -> Tensor:
        found: Tensor = torch.ops.mkldnn._convolution_pointwise(
            features, self._packed, self.plain.bias, *self._shape, self._activation, [], ""
        )
        return found


def pack_convolutions(network: nn.Module, dtype: torch.dtype) -> list[PackedConvolution]:
    """Put them in the place of the plain ones; nothing where the operators are not there."""
    if not has_packed_layers(dtype):
        return []
    packed: list[PackedConvolution] = []
    for module in list(network.modules()):
        behind = _relus_behind(module)
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Conv2d):
                packed.append(PackedConvolution(child, has_relu=name in behind))
                setattr(module, name, packed[-1])
                if name in behind:
                    setattr(module, behind[name], nn.Identity())
    return packed


def _relus_behind(module: nn.Module) -> dict[str, str]:
    """By the name of the layer before: of layers that are called in their order."""
    if not isinstance(module, nn.Sequential):
        return {}
    return {
        before: name
        for (before, _), (name, child) in pairwise(module.named_children())
        if isinstance(child, nn.ReLU)
    }


@cache
def has_packed_layers(dtype: torch.dtype) -> bool:
    """Whether a convolution and both kinds of products say here what the plain ones say."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call] # torch's own gap
        return False
    plain = nn.utils.skip_init(nn.Conv2d, 1, 1, 2)  # type: ignore[no-untyped-call] # torch's own gap
    dense = PackedDense(torch.tensor([[1.0, 2.0], [3.0, -4.0]]).to(dtype))
    features = torch.tensor([[0.5, 0.25], [1.0, 1.0]])
    added = torch.tensor([[1.0, 1.0], [2.0, 2.0]])
    picture = torch.tensor([[[[1.0, 1.0, 0.0], [1.0, 1.0, 0.0]]]])
    try:
        with torch.no_grad():
            plain.weight.copy_(torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
            plain.bias.fill_(-6.0)
            products = features @ dense.weight.float().t()
            expected = (functional.relu(plain(picture)), products + added, products + added[1])
            packed = PackedConvolution(plain.to(dtype), has_relu=True)
            packed.renew()
            dense.renew()
            rows, bias, given = added.to(dtype), added[1].to(dtype), features.to(dtype)
            found = (packed(picture.to(dtype)), dense(given, rows), dense(given, bias))
    except (RuntimeError, AttributeError, TypeError):
        return False
    # Whole numbers and halves, which half precision has exactly.
    return all(torch.equal(one.float(), other) for one, other in zip(found, expected, strict=True))


def _pair(padding: str | tuple[int, ...]) -> list[int]:
    if isinstance(padding, str):
        raise TypeError(f"a convolution with padding {padding!r} cannot be packed")
    return list(padding)
