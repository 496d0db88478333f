from __future__ import annotations

import logging

import pytest

from actor.gains import Gain
from actor.missed_ground import DEBUG_VARIABLE, MissedGround, is_debugging
from tests.fake_clock import FakeClock


@pytest.mark.parametrize(("value", "asked"), [("1", True), ("0", False), ("", False)])
def test_it_is_asked_for_by_the_environment(
    value: str, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, value)

    assert is_debugging() is asked


def test_steps_that_moved_on_and_earned_nothing_are_told_now_and_then(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    missed = MissedGround(4, clock)
    missed.begin({"x_pos": 40})

    with caplog.at_level(logging.WARNING):
        missed.note(Gain(8, 0), {"x_pos": 48})
        missed.note(Gain(0, 0), {"x_pos": 40})
        missed.note(Gain(0, 0), {"x_pos": 46})
        missed.note(Gain(0, 0), {"x_pos": 47})
        missed.note(Gain(None, 0), {"x_pos": 50})
        clock.advance(5.1)
        missed.note(Gain(0, 0), {"x_pos": 51})

    assert {record.getMessage() for record in caplog.records} == {"[reward][warn] dx_missed"}
    told = [(record.__dict__["why"], record.__dict__["x"]) for record in caplog.records]
    assert told == [("not new", 46), ("unread", 50), ("not new", 51)]
    assert caplog.records[-1].__dict__["missed"] == 4
