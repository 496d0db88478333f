"""Layers whose weights learn their gradients later than the layers before them learn theirs.

Differentiation walks through a network from its end. What a layer hands to the one before it is
waited for; the gradient of its own weights is wanted when the walk is over. So a second thread,
where there is one, finds those meanwhile. They are what they would be without it, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from common.networks import QuantileNetwork
from common.products import dense, product
from learner.second_thread import Answer, Aside, Later

Gradients = Mapping[int, Tensor]
"""By the `id` of the weight or bias that they are of."""
Found = tuple[Tensor, Tensor]
"""Gradients of a weight and its bias."""


class LateGradients:
    """Of the weights of one network, for one differentiation after the other."""

    def __init__(self, network: QuantileNetwork, aside: Aside, wanted: Sequence[Tensor]) -> None:
        """Convolutions and the hidden layer become late ones; the others are too small for it.

        Gradients come in the precision and the layout of `wanted`, in the order of parameters.
        """
        self._aside = aside
        network.hidden = LateLinear(network.hidden, self)
        for module in list(network.modules()):
            for name, child in module.named_children():
                if isinstance(child, nn.Conv2d):
                    setattr(module, name, LateConvolution(child, self))
        self._parameters: list[Tensor] = list(network.parameters())
        self._wanted = {
            id(mine): theirs for mine, theirs in zip(self._parameters, wanted, strict=True)
        }
        self._begun: list[Answer[Gradients]] = []

    def begin(self, layer: LateLayer, work: Callable[[], Found], *, is_last: bool) -> None:
        """Called by the walk, for each of the layers once.

        What comes last is not handed over: the thread that walked has nothing else to do then, and
        the other one can begin with what comes after the gradients.
        """
        find = partial(self._find, layer, work)
        self._begun.append(Later(find) if is_last else self._aside.begin(find))

    def walk(self, loss: Tensor) -> Callable[[], tuple[Tensor, ...]]:
        """What is returned waits for the gradients, in the order of the parameters."""
        self._begun = []
        found = torch.autograd.grad(loss, self._parameters, allow_unused=True)
        # Kept by who waits alone: they hold what the layers were given.
        begun, self._begun = self._begun, []
        return lambda: self._gather(found, begun)

    def _gather(
        self, found: Sequence[Tensor | None], begun: Sequence[Answer[Gradients]]
    ) -> tuple[Tensor, ...]:
        late: dict[int, Tensor] = {}
        # The newest first: the other thread comes to it last, so this one does it itself.
        for answer in reversed(begun):
            late |= answer()
        return tuple(
            late[id(mine)] if gradient is None else self._laid_out(mine, gradient)
            for mine, gradient in zip(self._parameters, found, strict=True)
        )

    @torch.no_grad()
    def _find(self, layer: LateLayer, work: Callable[[], Found]) -> Gradients:
        pairs = zip((layer.weight, layer.bias), work(), strict=True)
        return {id(mine): self._laid_out(mine, gradient) for mine, gradient in pairs}

    def _laid_out(self, mine: Tensor | None, gradient: Tensor) -> Tensor:
        """The fused optimizer walks through memories side by side, whatever their strides say."""
        wanted = self._wanted[id(mine)]
        if gradient.dtype == wanted.dtype and gradient.stride() == wanted.stride():
            return gradient
        return torch.empty_like(wanted).copy_(gradient)


class LateLinear(nn.Linear):
    """With the weights of `layer`."""

    def __init__(self, layer: nn.Linear, late: LateGradients) -> None:
        # Without memory, and so without a draw of random numbers.
        super().__init__(layer.in_features, layer.out_features, device="meta")
        self.weight, self.bias = layer.weight, layer.bias
        self.late = late

    def forward(self, features: Tensor) -> Tensor:
        if torch.compiler.is_compiling():
            return super().forward(features)
        # As autocast would do it, but where the gradient knows of it.
        features = features.to(self.weight.dtype)
        if not torch.is_grad_enabled():
            return dense(features, self.weight, self.bias)
        return _call(_Dense, features, self)


class LateConvolution(nn.Conv2d):
    """With the weights of `layer`."""

    def __init__(self, layer: nn.Conv2d, late: LateGradients) -> None:
        super().__init__(
            layer.in_channels,
            layer.out_channels,
            layer.kernel_size,  # type: ignore[arg-type] # a pair, as of every layer that was made
            layer.stride,  # type: ignore[arg-type] # a pair, too
            layer.padding,  # type: ignore[arg-type] # a pair, too
            device="meta",
        )
        self.weight, self.bias = layer.weight, layer.bias
        self.late = late

    def forward(self, features: Tensor) -> Tensor:
        if torch.compiler.is_compiling() or not torch.is_grad_enabled():
            return super().forward(features)
        features = features.to(self.weight.dtype)
        if self.weight.is_contiguous(memory_format=torch.channels_last):
            # Once, where the pass and the gradient would each do it.
            features = features.contiguous(memory_format=torch.channels_last)
        return _call(_Convolve, features, self)

    def gradients(
        self, before: Tensor, features: Tensor, *, of_weights: bool
    ) -> tuple[Tensor, ...]:
        """Of the features, or of weight and bias: two halves of what torch finds in one call."""
        mask = [not of_weights, of_weights, of_weights]
        found: tuple[Tensor, ...] = torch.ops.aten.convolution_backward(
            *(before, features, self.weight, [self.out_channels], self.stride, self.padding),
            *(self.dilation, False, [0, 0], self.groups, mask),
        )
        return found


LateLayer = LateLinear | LateConvolution


def _call(function: type[torch.autograd.Function], features: Tensor, layer: LateLayer) -> Tensor:
    found: Tensor = function.apply(  # type: ignore[no-untyped-call] # torch's own gap
        features, layer.weight, layer.bias, layer
    )
    return found


class _Dense(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, layer: LateLinear) -> Any:
        ctx.save_for_backward(features)
        ctx.layer = layer
        return dense(features, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, before: Tensor) -> Any:
        (features,) = ctx.saved_tensors
        needed = ctx.needs_input_grad[0]
        work = partial(_dense_gradients, before, features)
        ctx.layer.late.begin(ctx.layer, work, is_last=not needed)
        return product(before, ctx.layer.weight) if needed else None, None, None, None


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, layer: LateConvolution
    ) -> Any:
        ctx.save_for_backward(features)
        ctx.layer = layer
        return nn.functional.conv2d(features, weight, bias, layer.stride, layer.padding)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, before: Tensor) -> Any:
        (features,) = ctx.saved_tensors
        layer: LateConvolution = ctx.layer
        needed = ctx.needs_input_grad[0]
        work = partial(_convolution_gradients, layer, before, features)
        layer.late.begin(layer, work, is_last=not needed)
        if not needed:
            return None, None, None, None
        return layer.gradients(before, features, of_weights=False)[0], None, None, None


def _dense_gradients(before: Tensor, features: Tensor) -> Found:
    return product(before.t(), features), before.sum(dim=0)


def _convolution_gradients(layer: LateConvolution, before: Tensor, features: Tensor) -> Found:
    _, weight, bias = layer.gradients(before, features, of_weights=True)
    return weight, bias
