from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import ConfigError
from replay_server.rate_limit import (
    Gate,
    RateLimiter,
    RatioLimit,
    ReplayCounts,
    StrideSizes,
    check_limit,
    credit_samples,
    gate,
    rebased,
    surplus_samples,
    with_ratio,
)

LIMIT = RatioLimit(samples_per_insert=4.0, min_inserted=1_000, slack_samples=800)
SIZES = StrideSizes(capacity_items=10_000, block_items=128, batch_samples=64)


@pytest.mark.parametrize(
    ("inserted", "sampled", "expected"),
    [
        (0, 0, Gate.WAIT_FOR_ACTORS),
        (999, 0, Gate.WAIT_FOR_ACTORS),
        (1_000, 0, Gate.OPEN),
        (1_200, 0, Gate.OPEN),
        (1_201, 0, Gate.WAIT_FOR_LEARNER),
        (1_201, 4, Gate.OPEN),
        (1_000, 800, Gate.OPEN),
        (1_000, 801, Gate.WAIT_FOR_ACTORS),
    ],
)
def test_gate_has_two_sides(inserted: int, sampled: int, expected: Gate) -> None:
    assert gate(ReplayCounts(inserted=inserted, sampled=sampled), LIMIT) is expected


@pytest.mark.parametrize(
    ("inserted", "sampled", "expected"),
    [(0, 0, 0), (999, 0, 0), (1_000, 0, 800), (1_200, 100, 1_500), (1_000, 801, -1)],
)
def test_credit_is_what_may_be_taken_before_the_gate_closes(
    inserted: int, sampled: int, expected: float
) -> None:
    assert credit_samples(ReplayCounts(inserted=inserted, sampled=sampled), LIMIT) == expected


@given(
    ratio=st.floats(0.01, 100),
    block_items=st.integers(1, 512),
    batch=st.integers(1, 2048),
    actors_first=st.booleans(),
)
def test_an_accepted_limit_never_deadlocks_and_holds_the_ratio(
    ratio: float, block_items: int, batch: int, actors_first: bool
) -> None:
    sizes = StrideSizes(capacity_items=5_000, block_items=block_items, batch_samples=batch)
    slack = max(batch, block_items * ratio)
    limit = RatioLimit(samples_per_insert=ratio, min_inserted=100, slack_samples=slack)
    limiter = RateLimiter(limit, sizes)
    for _ in range(200):
        current = limiter.gate()
        actors_move = current is Gate.WAIT_FOR_ACTORS or (current is Gate.OPEN and actors_first)
        if actors_move:
            limiter.add_inserted(block_items)
        else:
            limiter.add_sampled(batch)
        if limiter.counts.inserted >= limit.min_inserted:
            first_block = block_items * ratio
            assert abs(surplus_samples(limiter.counts, limit)) <= 2 * slack + first_block


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"min_inserted": 10_001}, "between 1 and 10000 items"),
        ({"min_inserted": 0}, "between 1 and 10000 items"),
        ({"slack_samples": 511}, "at least 512 are needed"),
        ({"slack_samples": 60, "samples_per_insert": 0.1}, "at least 64 are needed"),
        ({"slack_samples": math.nan}, "at least 512"),
        ({"samples_per_insert": 0.0}, "above 0"),
        ({"samples_per_insert": math.nan}, "above 0"),
        ({"samples_per_insert": math.inf}, "above 0"),
    ],
)
def test_limits_that_would_block_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_limit(replace(LIMIT, **change), SIZES)  # type: ignore[arg-type]  # by field name


@pytest.mark.parametrize("available", [1_000, 1_500, 9_999])
def test_a_resumed_buffer_owes_nothing(available: int) -> None:
    limiter = RateLimiter(LIMIT, SIZES, available_items=available)

    assert surplus_samples(limiter.counts, limiter.limit) == 0
    assert limiter.gate() is Gate.OPEN


def test_a_resume_with_an_empty_buffer_waits_for_the_first_items_again() -> None:
    limiter = RateLimiter(LIMIT, SIZES, available_items=0)

    assert limiter.gate() is Gate.WAIT_FOR_ACTORS
    assert rebased(10, LIMIT) == ReplayCounts(inserted=10, sampled=0)


@pytest.mark.parametrize("ratio", [0.5, 16.0])
def test_a_new_ratio_counts_from_now(ratio: float) -> None:
    limiter = RateLimiter(LIMIT, SIZES)
    limiter.add_inserted(9_000)
    limiter.add_sampled(32_000)

    limiter.change_ratio(ratio)

    assert surplus_samples(limiter.counts, limiter.limit) == 0
    assert limiter.limit.samples_per_insert == ratio


def test_a_pause_of_the_learner_earns_no_burst() -> None:
    limiter = RateLimiter(LIMIT, SIZES)
    limiter.add_inserted(9_000)

    limiter.rebase()

    assert surplus_samples(limiter.counts, LIMIT) == 0
    assert limiter.counts.inserted == 9_000


def test_a_new_ratio_keeps_the_slack_in_agent_steps_but_never_below_one_batch() -> None:
    assert with_ratio(LIMIT, 8.0, SIZES).slack_samples == 1_600
    assert with_ratio(LIMIT, 0.1, SIZES).slack_samples == SIZES.batch_samples


def test_a_refused_ratio_changes_nothing() -> None:
    limiter = RateLimiter(LIMIT, SIZES, available_items=2_000)
    counts = limiter.counts

    with pytest.raises(ConfigError):
        limiter.change_ratio(-1.0)

    assert (limiter.limit, limiter.counts) == (LIMIT, counts)
