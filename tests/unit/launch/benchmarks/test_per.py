from __future__ import annotations

import inspect
import sys
from typing import Any

import pytest
import torch

from launch.benchmarks import per
from launch.benchmarks.blocks import BLOCK_ITEMS
from launch.benchmarks.kernels import OPERATIONS, count_operations
from launch.benchmarks.measure import Work
from launch.benchmarks.per import PerCalls, PerPlan, compare_buffers, our_calls

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
        "cpprb is not measured: it is not installed; "
        "run: pip install -c constraints.txt -e '.[bench]'",
    )


def test_the_items_that_were_drawn_are_those_whose_priorities_are_set() -> None:
    """`update` without `sample` before it would set one item again and again."""
    calls = our_calls(PerPlan(items=4096, batch_size=64))
    table = _table_of(calls.update)
    before = table.tree.get(torch.arange(4096)).clone()

    calls.sample_and_update()

    changed = (table.tree.get(torch.arange(4096)) != before).sum()
    assert 32 < int(changed) <= 64


def test_a_block_is_inserted_where_the_one_before_it_ended() -> None:
    calls = our_calls(PerPlan(items=4096, batch_size=64))
    table = _table_of(calls.update)

    for _ in range(3):
        calls.insert()

    values = table.tree.get(torch.arange(4096)).view(-1, BLOCK_ITEMS)
    # Three blocks with the same errors; the next one has been evicted for what comes.
    assert torch.equal(values[0], values[1])
    assert torch.equal(values[1], values[2])
    assert (values[2] > 0).all()
    assert (values[3] == 0).all()
    assert (values[4] > 0).all()


def test_every_capacity_is_measured_as_large_as_its_row_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    def calls(plan: PerPlan) -> PerCalls:
        made.append(plan.items)
        return PerCalls(_nothing, _nothing, _nothing)

    monkeypatch.setattr(per, "our_calls", calls)

    rows = per._by_capacity(PerPlan(rounds=1))

    assert made == [10_000, 100_000, 1_000_000]
    assert [row.contender for row in rows] == [
        f"ours: sample + update 512 of {items:,}" for items in made
    ]


def _nothing() -> None:
    return


def _table_of(update: Work) -> Any:
    """The table that a call closes over."""
    return inspect.getclosurevars(update).nonlocals["table"]
