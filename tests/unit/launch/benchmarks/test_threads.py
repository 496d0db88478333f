from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
import torch

from launch.benchmarks.measure import Contender
from launch.benchmarks.threads import measure_threads


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = torch.get_num_threads()
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    yield
    torch.set_num_threads(before)


def test_the_same_work_has_one_thread_and_two_in_turns() -> None:
    seen: list[int] = []

    result = measure_threads(
        {"product": Contender(work=lambda: seen.append(torch.get_num_threads()))}, rounds=3
    )

    assert seen == [1, 2] * 4
    assert [row.contender for row in result.rows] == ["product, one thread", "product, two threads"]


def test_work_with_a_thread_beside_it_has_one_thread_in_torch() -> None:
    seen: list[tuple[str, int]] = []
    works = {
        name: lambda name=name: seen.append((name, torch.get_num_threads()))
        for name in ("alone", "beside")
    }

    result = measure_threads(
        {"update": Contender(work=works["alone"])}, 1, {"update": works["beside"]}
    )

    assert seen[:3] == [("alone", 1), ("alone", 2), ("beside", 1)]
    assert [row.contender for row in result.rows] == [
        "update, one thread",
        "update, two threads",
        "update, a thread beside",
    ]


def test_two_threads_are_compared_with_one_by_the_wall_clock() -> None:
    """Sleep is no time of any thread: the wall clock alone sees it."""

    def work() -> None:
        time.sleep(0.03 / torch.get_num_threads())

    contenders = {"a": Contender(work=work), "b": Contender(work=work, is_rate=True)}

    a_one, a_two, b_one, b_two = measure_threads(contenders, rounds=3).rows

    assert (a_one.ratio, b_one.ratio) == (1.0, 1.0)
    assert a_two.ratio == pytest.approx(0.5, rel=0.3)
    assert b_two.ratio == pytest.approx(2.0, rel=0.3)
    assert a_one.median >= 0.03


def test_afterwards_there_are_as_many_threads_as_before() -> None:
    torch.set_num_threads(1)

    measure_threads({"a": Contender(work=lambda: None)}, rounds=1)

    assert torch.get_num_threads() == 1


def test_one_core_has_no_second_thread_and_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)

    result = measure_threads({"a": Contender(work=lambda: None)}, rounds=1)

    assert result.rows == []
    assert result.notes == ("two threads are not measured: this machine has 1 core",)
