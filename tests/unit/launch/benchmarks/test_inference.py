from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest
import torch

from launch.benchmarks.inference import (
    BATCHES,
    COMPILED,
    inference_contenders,
    load_runtime,
    preparing_contenders,
)


def test_every_way_to_evaluate_gives_the_answer_of_the_first() -> None:
    eager: dict[str, torch.Tensor] = {}
    runtime, _ = load_runtime()
    for name, contender in inference_contenders(compiles=False, runtime=runtime).items():
        answer: Any = contender.work()
        _, quantiles = answer

        expected = eager.setdefault(contender.group, quantiles)
        limit = 0.1 if "bfloat16" in name else 1e-3
        assert float((quantiles - expected).abs().max()) < limit * float(expected.std()), name
    assert [len(expected) for expected in eager.values()] == list(BATCHES)


def test_plain_eager_torch_is_what_the_others_are_compared_with() -> None:
    first: dict[str, str] = {}
    for name, contender in inference_contenders(compiles=False).items():
        first.setdefault(contender.group, name)

    assert list(first.values()) == [f"inference, batch {count}: eager" for count in BATCHES]


def test_a_new_version_is_prepared_as_an_actor_does_it() -> None:
    names = list(preparing_contenders())

    assert names == [
        "a new version of the weights: prepared",
        "a new version of the weights: frozen TorchScript",
    ]


def test_a_network_that_cannot_be_compiled_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_network: object) -> object:
        def call(*_: object) -> object:
            raise RuntimeError("no compiler")

        return call

    monkeypatch.setattr("torch.compile", fail)

    assert not any(COMPILED in name for name in inference_contenders(compiles=True))


def test_channels_last_is_one_of_the_ways() -> None:
    names = inference_contenders(compiles=False)

    assert {f"inference, batch {count}: eager, channels-last" for count in BATCHES} <= names.keys()


@pytest.mark.parametrize("package", ["onnx", "onnxruntime"])
def test_a_missing_runtime_is_named_with_what_installs_it(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnx", ModuleType("onnx"))
    monkeypatch.setitem(sys.modules, package, None)

    assert load_runtime() == (
        None,
        (
            "ONNX Runtime is not measured: it is not installed; "
            "run: pip install -c constraints.txt -e '.[bench]'",
        ),
    )


def test_the_runtime_is_compared_where_it_is_installed() -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")

    ways = inference_contenders(compiles=False, runtime=runtime)

    assert {f"inference, batch {count}: ONNX Runtime" for count in BATCHES} <= ways.keys()
    assert "a new version of the weights: ONNX Runtime" in preparing_contenders(runtime)
