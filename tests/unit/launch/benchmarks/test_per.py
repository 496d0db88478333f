from __future__ import annotations

import sys

import pytest
import torch

from launch.benchmarks.kernels import OPERATIONS, count_operations
from launch.benchmarks.per import PerPlan, compare_buffers, our_calls

SMALL = PerPlan(items=4096, batch_size=16, rounds=2)


def test_views_are_no_operations() -> None:
    tensor = torch.zeros(4, 4)

    assert count_operations(lambda: tensor.view(-1).narrow(0, 0, 4).unsqueeze(0)) == 0
    assert count_operations(lambda: tensor.add(1).mul_(2)) == 2


def test_operations_do_not_depend_on_the_number_of_items_that_are_drawn() -> None:
    few, many = (our_calls(PerPlan(items=4096, batch_size=size)) for size in (2, 64))

    for call in ("sample", "update", "insert"):
        counts = {count_operations(getattr(calls, call)) for calls in (few, many)}
        assert len(counts) == 1
        assert 0 < counts.pop() < 100


def test_cpprb_comes_first_where_it_is_installed() -> None:
    pytest.importorskip("cpprb")

    result = compare_buffers(SMALL)

    by_group = {row.group: row for row in reversed(result.rows) if row.unit != OPERATIONS}
    assert set(by_group) == {"both", "sample", "update", "insert"}
    assert all(row.contender.startswith("cpprb") for row in by_group.values())
    assert result.notes == ()


def test_without_cpprb_ours_is_measured_and_a_note_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cpprb", None)

    result = compare_buffers(SMALL)

    assert len([row for row in result.rows if row.unit == "s/call"]) == 4
    assert len([row for row in result.rows if row.unit == OPERATIONS]) == 3
    assert result.notes == (
        'cpprb is not measured: it is not installed; run: pip install "warpzone[bench]"',
    )
