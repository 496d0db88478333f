from __future__ import annotations

import pytest

from common.reject_counts import MAX_REASONS
from replay_server.report import ServiceCounts, actual_ratio
from tests.service_factory import make_limiter


def test_reasons_are_bounded() -> None:
    counts = ServiceCounts()
    for number in range(1000):
        counts.note_bad(f"reason-{number}")
        counts.note_bad("reason-0")

    assert len(counts.bad_messages) == MAX_REASONS
    assert counts.bad_messages["reason-0"] == 1001


def test_the_ratio_is_unknown_before_learning_starts() -> None:
    limiter = make_limiter(starts=16)
    limiter.add_inserted(16)

    assert actual_ratio(limiter) is None


def test_the_ratio_counts_from_the_start_of_learning() -> None:
    limiter = make_limiter(starts=16)
    limiter.add_inserted(26)
    limiter.add_sampled(35)

    assert actual_ratio(limiter) == pytest.approx(3.5)
