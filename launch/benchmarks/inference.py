"""Ways to evaluate the network of an actor, as contenders of the benchmark `actor`."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import torch

from common.devices import has_fast_bfloat16
from common.inference import PreparedNetwork
from common.networks import QuantileNetwork, build_network, infer
from common.quantiles import greedy_actions
from common.specs import DataSpec
from launch.benchmarks.extras import load_reference
from launch.benchmarks.measure import Contender, Work

BATCHES = (1, 8)
SEED = 1
COMPILED = "torch.compile"
ONNX = "ONNX Runtime"
Given = tuple[torch.Tensor, torch.Tensor]
"""Pixels and previous actions."""


def load_runtime() -> tuple[Any, tuple[str, ...]]:
    """ONNX Runtime, or None and the note that says what to install; torch exports with `onnx`."""
    _, notes = load_reference("onnx", ONNX)
    return (None, notes) if notes else load_reference("onnxruntime", ONNX)


def inference_contenders(*, compiles: bool, runtime: Any = None) -> dict[str, Contender]:
    """Plain eager torch comes first in every group."""
    return {
        f"inference, batch {count}: {name}": Contender(work=work, group=f"inference {count}")
        for count in BATCHES
        for name, work in _ways(count, compiles=compiles, runtime=runtime)
    }


def preparing_contenders(runtime: Any = None) -> dict[str, Contender]:
    """What a new version of the weights costs before it can be played with."""
    network, given = _network_and_input(1)
    prepared = PreparedNetwork(network)
    works: dict[str, Work] = {
        "prepared": prepared.refresh,
        "frozen TorchScript": lambda: _scripted(network, given),
    }
    if runtime is not None:
        works[ONNX] = lambda: _exported(runtime, network, given)
    return {
        f"a new version of the weights: {name}": Contender(work=work, group="new version")
        for name, work in works.items()
    }


def _network_and_input(count: int) -> tuple[QuantileNetwork, Given]:
    spec = DataSpec()
    torch.manual_seed(SEED)
    network = build_network("small", spec).eval()
    pixels = torch.randint(0, 256, (count, spec.stack, spec.height, spec.width)).to(torch.uint8)
    return network, (pixels, torch.zeros(count, dtype=torch.int64))


def _ways(count: int, *, compiles: bool, runtime: Any) -> Iterator[tuple[str, Work]]:
    network, given = _network_and_input(count)
    yield "eager", lambda: infer(network, *given)
    yield "eager, channels-last", _channels_last(network, given)
    yield "frozen TorchScript", _call(_scripted(network, given), given)
    if compiles and (compiled := _compiled(network, given)) is not None:
        yield COMPILED, compiled
    if runtime is not None:
        yield ONNX, _run(_exported(runtime, network, given), given)
    prepared = PreparedNetwork(network)
    yield "prepared", lambda: prepared.infer(*given)
    if has_fast_bfloat16():
        half = PreparedNetwork(network, torch.bfloat16)
        yield "prepared, bfloat16", lambda: half.infer(*given)


def _channels_last(network: QuantileNetwork, given: Given) -> Work:
    """Pixels come as a stack of pictures, so turning them is a part of it."""
    turned = copy.deepcopy(network).to(memory_format=torch.channels_last)  # type: ignore[call-overload] # torch's own gap
    pixels, prev_actions = given
    return lambda: infer(turned, pixels.contiguous(memory_format=torch.channels_last), prev_actions)


def _scripted(network: QuantileNetwork, given: Given) -> Any:
    with warnings.catch_warnings():
        # Deprecated, and still a way that people take.
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.freeze(torch.jit.trace(network, given))  # type: ignore[no-untyped-call]


def _exported(runtime: Any, network: QuantileNetwork, given: Given) -> Any:
    """A session of ONNX Runtime with one thread, as all the others have."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        # The older of two exporters; the newer one needs another package and takes seconds.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(network, given, file, dynamo=False)  # type: ignore[arg-type] # this one takes it
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    return runtime.InferenceSession(file.getvalue(), options, providers=providers)


def _run(session: Any, given: Given) -> Work:
    names = [one.name for one in session.get_inputs()]

    def work() -> tuple[torch.Tensor, torch.Tensor]:
        arrays = [tensor.numpy() for tensor in given]
        (values,) = session.run(None, dict(zip(names, arrays, strict=True)))
        quantiles = torch.from_numpy(values)
        return greedy_actions(quantiles), quantiles

    return work


def _compiled(network: QuantileNetwork, given: Given) -> Work | None:
    """None where torch finds no compiler that it can use."""
    work = _call(torch.compile(network), given)
    try:
        work()
    except import_module("learner.update").COMPILE_FAILURES:
        torch.compiler.reset()
        return None
    return work


def _call(network: Any, given: Given) -> Work:
    return lambda: infer(network, *given)
