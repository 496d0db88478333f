from __future__ import annotations

import pytest
import torch

from replay_server.statistics import (
    IntervalReading,
    PhaseMeans,
    PrioritySummary,
    RunningMean,
    UniqueRatio,
    summarise_priorities,
)
from replay_server.sum_tree import SumTree


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def tree_of(priorities: torch.Tensor) -> SumTree:
    tree = SumTree(len(priorities))
    tree.set(torch.arange(len(priorities)), priorities)
    return tree


def test_phases_are_measured_in_ms_by_the_given_clock() -> None:
    clock = FakeClock()
    timer = PhaseMeans(clock)
    with timer.phase("tree"):
        clock.now_s += 0.002

    assert timer.means_ms() == {"tree": pytest.approx(2.0)}


def test_a_running_mean_begins_at_its_first_value_and_follows_slowly() -> None:
    mean = RunningMean()
    mean.add(10.0)
    mean.add(20.0)

    assert mean.value == pytest.approx(10.1)


def test_unique_ratio_counts_different_items() -> None:
    unique = UniqueRatio()
    unique.add(torch.tensor([1, 2, 3, 4]))
    unique.add(torch.tensor([1, 1, 1, 5]))

    last, mean = unique.read()

    assert last == 0.5
    assert mean == pytest.approx(0.995)


def test_summary_ignores_slots_that_cannot_be_drawn() -> None:
    priorities = torch.zeros(1_000)
    priorities[::2] = torch.arange(1.0, 501.0)

    summary = summarise_priorities(tree_of(priorities))

    assert summary.mean == pytest.approx(250.5)
    assert summary.p50 == pytest.approx(250.5)
    assert summary.p90 == pytest.approx(450.1)
    assert summary.p99 == pytest.approx(495.01)


def test_summary_of_a_large_tree_is_close_to_the_whole() -> None:
    priorities = torch.rand(300_000, generator=torch.Generator().manual_seed(0))

    summary = summarise_priorities(tree_of(priorities))

    assert summary.p90 == pytest.approx(0.9, abs=0.02)


def test_summary_of_an_empty_tree_is_zero() -> None:
    assert summarise_priorities(SumTree(10)) == PrioritySummary()


def test_a_reading_is_taken_again_only_after_the_interval() -> None:
    clock = FakeClock()
    taken = iter(range(10))
    reading = IntervalReading(lambda: next(taken), clock, interval_s=10.0)

    told = []
    for now_s in (0.0, 9.9, 10.0, 19.9, 20.0):
        clock.now_s = now_s
        told.append(reading.read())

    assert told == [0, 0, 1, 1, 2]
