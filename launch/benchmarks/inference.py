"""Ways to evaluate the network of an actor, as contenders of the benchmark `actor`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import torch

from common.devices import has_fast_bfloat16
from common.inference import PreparedNetwork
from common.networks import QuantileNetwork, build_network, infer
from common.specs import DataSpec
from launch.benchmarks.measure import Contender, Work

BATCHES = (1, 8)
SEED = 1
COMPILED = "torch.compile"


def inference_contenders(*, compiles: bool) -> dict[str, Contender]:
    """Plain eager torch comes first in every group."""
    return {
        f"inference, batch {count}: {name}": Contender(work=work, group=f"inference {count}")
        for count in BATCHES
        for name, work in _ways(count, compiles=compiles)
    }


def preparing_contenders() -> dict[str, Contender]:
    """What a new version of the weights costs before it can be played with."""
    network, given = _network_and_input(1)
    prepared = PreparedNetwork(network)
    works: dict[str, Work] = {
        "prepared": prepared.refresh,
        "frozen TorchScript": lambda: _scripted(network, given),
    }
    return {
        f"a new version of the weights: {name}": Contender(work=work, group="new version")
        for name, work in works.items()
    }


def _network_and_input(count: int) -> tuple[QuantileNetwork, tuple[torch.Tensor, torch.Tensor]]:
    spec = DataSpec()
    torch.manual_seed(SEED)
    network = build_network("small", spec).eval()
    pixels = torch.randint(0, 256, (count, spec.stack, spec.height, spec.width)).to(torch.uint8)
    return network, (pixels, torch.zeros(count, dtype=torch.int64))


def _ways(count: int, *, compiles: bool) -> Iterator[tuple[str, Work]]:
    network, given = _network_and_input(count)
    yield "eager", lambda: infer(network, *given)
    yield "frozen TorchScript", _call(_scripted(network, given), given)
    if compiles and (compiled := _compiled(network, given)) is not None:
        yield COMPILED, compiled
    prepared = PreparedNetwork(network)
    yield "prepared", lambda: prepared.infer(*given)
    if has_fast_bfloat16():
        half = PreparedNetwork(network, torch.bfloat16)
        yield "prepared, bfloat16", lambda: half.infer(*given)


def _scripted(network: QuantileNetwork, given: tuple[torch.Tensor, torch.Tensor]) -> Any:
    with warnings.catch_warnings():
        # Deprecated, and still a way that people take.
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.freeze(torch.jit.trace(network, given))  # type: ignore[no-untyped-call]


def _compiled(network: QuantileNetwork, given: tuple[torch.Tensor, torch.Tensor]) -> Work | None:
    """None where torch finds no compiler that it can use."""
    work = _call(torch.compile(network), given)
    try:
        work()
    except import_module("learner.update").COMPILE_FAILURES:
        torch.compiler.reset()
        return None
    return work


def _call(network: Any, given: tuple[torch.Tensor, torch.Tensor]) -> Work:
    return lambda: infer(network, *given)
