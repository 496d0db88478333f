"""Late gradients: the same as torch's own, found in whatever order and by whichever thread."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from typing import TypeVar

import pytest
import torch
from torch import Tensor

from common.network_bodies import NetworkKind
from common.networks import QuantileNetwork, build_network
from common.specs import DataSpec
from learner.late_gradients import LateConvolution, LateGradients, LateLinear
from learner.second_thread import Answer, Aside, AtOnce, Done, SecondThread
from tests.learner_factory import random_batch

T = TypeVar("T")
SPEC = DataSpec(height=40, width=40, stack=2, num_actions=3, n_step=2)
BATCH = random_batch(6, SPEC)


class Postponing:
    """Begins nothing before it is asked, and counts what it was given."""

    def __init__(self) -> None:
        self.given = 0

    def begin(self, work: Callable[[], T]) -> Answer[T]:
        self.given += 1
        return Postponed(work)

    def close(self) -> None: ...


class Postponed(Done[T]):
    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work

    def __call__(self) -> T:
        return self._work()


def network(kind: NetworkKind) -> QuantileNetwork:
    torch.manual_seed(0)
    return build_network(kind, SPEC, 4)


def loss_of(of: QuantileNetwork) -> Tensor:
    told: Tensor = of(BATCH.observations, BATCH.prev_actions)
    return told.square().mean()


def late_gradients(original: QuantileNetwork, aside: Aside) -> tuple[Tensor, ...]:
    twin = copy.deepcopy(original)
    late = LateGradients(twin, aside, list(original.parameters()))
    return late.walk(loss_of(twin))()


@pytest.mark.parametrize("kind", ["small", "nature", "impala"])
def test_they_are_those_of_torch(kind: NetworkKind) -> None:
    original = network(kind)

    found = late_gradients(original, AtOnce())

    expected = torch.autograd.grad(loss_of(original), list(original.parameters()))
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["small", "nature", "impala"])
def test_who_finds_them_and_when_changes_no_bit(kind: NetworkKind) -> None:
    original = network(kind)
    second = SecondThread()

    found = [late_gradients(original, aside) for aside in (AtOnce(), Postponing(), second)]
    second.close()

    for now, later, elsewhere in zip(*found, strict=True):
        # And they are no part of a graph.
        assert not any(mine.requires_grad for mine in (now, later, elsewhere))
        assert torch.equal(now, later)
        assert torch.equal(now, elsewhere)


def test_convolutions_and_the_hidden_layer_are_handed_over_but_for_the_first() -> None:
    twin = network("nature")
    aside = Postponing()
    late = LateGradients(twin, aside, list(twin.parameters()))

    late.walk(loss_of(twin))

    layers = [layer for layer in twin.modules() if isinstance(layer, LateConvolution | LateLinear)]
    assert (len(layers), aside.given) == (4, 3)


def test_a_pass_without_gradients_hands_nothing_over() -> None:
    original = network("small")
    twin = copy.deepcopy(original)
    aside = Postponing()
    LateGradients(twin, aside, list(original.parameters()))

    with torch.no_grad():
        loss = loss_of(twin)

    assert aside.given == 0
    assert loss.item() == pytest.approx(loss_of(original).item(), rel=1e-5)


def test_a_walk_that_failed_leaves_nothing_to_the_next() -> None:
    original = network("small")
    twin = copy.deepcopy(original)
    late = LateGradients(twin, Postponing(), list(original.parameters()))
    first = next(layer for layer in twin.modules() if isinstance(layer, LateConvolution))
    hook = first.register_forward_hook(break_the_walk)
    with pytest.raises(RuntimeError, match="in the middle"):
        # The first layer comes last: the others have handed over by then.
        late.walk(loss_of(twin))
    hook.remove()

    found = late.walk(loss_of(twin))()

    expected = torch.autograd.grad(loss_of(original), list(original.parameters()))
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


def break_the_walk(_layer: object, _given: object, found: Tensor) -> None:
    def fail(_: Tensor) -> None:
        raise RuntimeError("in the middle of a walk")

    found.register_hook(fail)  # type: ignore[no-untyped-call] # torch's own gap


def test_nobody_keeps_what_gradients_were_found_from() -> None:
    twin = network("small")
    late = LateGradients(twin, AtOnce(), list(twin.parameters()))
    kept: list[weakref.ref[Tensor]] = []
    twin.hidden.register_forward_hook(lambda _, given, __: kept.append(weakref.ref(given[0])))

    late.walk(loss_of(twin))()
    gc.collect()

    assert [one() for one in kept] == [None]
