from __future__ import annotations

from common.reject_counts import MAX_REASONS, RejectCounts


def test_reasons_are_bounded_and_the_sum_is_not() -> None:
    counts = RejectCounts()
    for number in range(1000):
        counts.note(f"reason-{number}")
        counts.note("reason-0")

    assert len(counts.by_reason) == MAX_REASONS
    assert counts.by_reason["reason-0"] == 1001
    assert counts.total == 2000


def test_a_heartbeat_tells_the_sum_and_the_reasons_that_occurred() -> None:
    counts = RejectCounts()
    counts.note("checksum")
    counts.note("checksum")

    assert counts.told_as("weights_bad") == {"weights_bad": 2, "weights_bad_checksum": 2}
    assert RejectCounts().told_as("weights_bad") == {"weights_bad": 0}
