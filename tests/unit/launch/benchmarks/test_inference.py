from __future__ import annotations

from typing import Any

import pytest
import torch

from launch.benchmarks.inference import (
    BATCHES,
    COMPILED,
    inference_contenders,
    preparing_contenders,
)


def test_every_way_to_evaluate_gives_the_answer_of_the_first() -> None:
    eager: dict[str, torch.Tensor] = {}
    for name, contender in inference_contenders(compiles=False).items():
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
