from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from launch.benchmarks.growth import FIRST_ROUNDS, MemoryWatch, growth_per_minute

MINUTES = [0.4 * number for number in range(24)]
STEP_BYTES = 30e6


def watch(sizes: Sequence[int]) -> MemoryWatch:
    """One reading a minute."""
    readings, seconds = iter(sizes), _minutes()
    memory = MemoryWatch(lambda: next(readings), clock=lambda: next(seconds))
    for _ in sizes:
        memory.read()
    return memory


def _minutes() -> Iterator[float]:
    second = 1_000.0
    while True:
        yield second
        second += 60.0


@pytest.mark.parametrize("step", [1, 5, 12, 20, 23])
def test_one_step_is_no_growth_wherever_it_is(step: int) -> None:
    sizes = [1e9 + STEP_BYTES * (number >= step) for number in range(len(MINUTES))]

    assert growth_per_minute(MINUTES, sizes) == pytest.approx(0.0, abs=1.0)


def test_a_leak_is_growth_also_beside_a_step() -> None:
    leak = [1e9 + 2e6 * minute for minute in MINUTES]
    with_step = [size + STEP_BYTES * (number >= 9) for number, size in enumerate(leak)]

    assert growth_per_minute(MINUTES, leak) == pytest.approx(2e6, rel=1e-6)
    assert growth_per_minute(MINUTES, with_step) == pytest.approx(2e6, rel=1e-6)


def test_a_leak_in_many_steps_is_growth() -> None:
    """4 MB every 1.6 minutes."""
    sizes = [1e9 + 4e6 * (number // 4) for number in range(len(MINUTES))]

    assert growth_per_minute(MINUTES, sizes) == pytest.approx(2.5e6, rel=0.2)


def test_memory_that_only_goes_up_and_down_does_not_grow() -> None:
    noise = np.random.default_rng(1).normal(scale=1e6, size=len(MINUTES))

    assert abs(growth_per_minute(MINUTES, list(1e9 + noise))) < 5e5


def test_the_first_rounds_do_not_count() -> None:
    memory = watch([100] * FIRST_ROUNDS + [900, 910, 920, 930, 940, 950, 960])

    plain, growth, difference = memory.rows()
    assert (plain.median, plain.low_quartile, plain.unit) == (930, 915, "byte")
    assert growth.contender == "its growth in 6 minutes, one step left out"
    assert growth.median == pytest.approx(10.0)
    assert growth.unit == "byte/min"
    assert difference.contender == "memory at the end less that in round 3"
    assert (difference.median, difference.unit) == (60.0, "byte")
    assert memory.notes() == ()


def test_a_step_that_is_no_growth_is_in_the_difference_of_both_ends() -> None:
    rows = watch([100] * FIRST_ROUNDS + [900] * 5 + [950] * 5).rows()

    told = {row.contender: row.median for row in rows}
    assert told["its growth in 9 minutes, one step left out"] == pytest.approx(0.0, abs=1e-6)
    assert told["memory at the end less that in round 3"] == 50.0


def test_of_few_readings_no_growth_is_told_and_a_note_says_how_many_it_takes() -> None:
    memory = watch([100, 100, 900, 900, 900])

    assert [row.contender for row in memory.rows()] == ["memory of the server between batches"]
    assert memory.notes() == (
        "growth of the server's memory is not told: it takes --rounds 8 or more",
    )


def test_a_single_reading_is_the_memory() -> None:
    assert watch([100]).rows()[0].median == 100
