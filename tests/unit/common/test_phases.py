from __future__ import annotations

import threading

import pytest

from common.phases import PHASES, PhaseTimer, gap_share
from tests.fake_clock import FakeClock


def spend(timer: PhaseTimer, clock: FakeClock, name: str, seconds: float) -> None:
    with timer.phase(name):
        clock.advance(seconds)


def test_shares_are_parts_of_the_interval() -> None:
    clock = FakeClock()
    timer = PhaseTimer(clock)

    spend(timer, clock, "wait", 1.0)
    spend(timer, clock, "work", 2.0)
    spend(timer, clock, "wait", 0.5)
    clock.advance(0.5)

    assert timer.shares() == pytest.approx({"wait": 1.5 / 4, "work": 0.5})


def test_each_reading_starts_a_new_interval_and_keeps_the_names() -> None:
    clock = FakeClock()
    timer = PhaseTimer(clock)
    spend(timer, clock, "wait", 1.0)
    timer.shares()

    spend(timer, clock, "work", 1.0)

    assert timer.shares() == {"wait": 0.0, "work": 1.0}


def test_a_phase_that_raises_is_counted() -> None:
    clock = FakeClock()
    timer = PhaseTimer(clock)

    def breaks() -> None:
        with timer.phase("work"):
            clock.advance(3.0)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        breaks()

    assert timer.shares() == {"work": 1.0}


def test_reading_at_once_does_not_divide_by_zero() -> None:
    timer = PhaseTimer(FakeClock())

    assert timer.shares() == {}
    assert timer.shares() == {}


def test_time_in_an_inner_phase_is_not_that_of_the_outer_one() -> None:
    clock = FakeClock()
    timer = PhaseTimer(clock)

    with timer.phase("play"):
        clock.advance(1.0)
        spend(timer, clock, "picture", 2.0)
        clock.advance(3.0)
    clock.advance(2.0)

    assert timer.shares() == pytest.approx({"play": 4 / 8, "picture": 2 / 8})


def test_a_reading_within_a_phase_cuts_it_in_two() -> None:
    clock = FakeClock()
    timer = PhaseTimer(clock)

    with timer.phase("logging"):
        clock.advance(1.0)
        first = timer.shares()
        clock.advance(1.0)
    clock.advance(1.0)

    assert first == {"logging": 1.0}
    assert timer.shares() == {"logging": 0.5}


def test_an_inner_phase_that_raises_gives_the_time_back_to_the_outer_one() -> None:
    clock = FakeClock()
    timer = PhaseTimer(clock)

    def breaks() -> None:
        with timer.phase("inner"):
            clock.advance(1.0)
            raise ValueError("broken")

    with timer.phase("outer"):
        with pytest.raises(ValueError, match="broken"):
            breaks()
        clock.advance(3.0)

    assert timer.shares() == {"outer": 0.75, "inner": 0.25}


def test_every_part_of_a_run_may_wait() -> None:
    assert all("wait" in phases for phases in PHASES.values())


def test_time_of_other_threads_is_not_counted() -> None:
    clock = FakeClock()
    timer = PhaseTimer(clock)
    spend(timer, clock, "work", 1.0)

    with timer.phase("wait"):
        clock.advance(1.0)
        other = threading.Thread(target=spend, args=(timer, clock, "work", 2.0))
        other.start()
        other.join()

    assert timer.shares() == {"work": 0.25, "wait": 0.75}


def test_a_gap_is_all_but_the_update_claimed_or_not() -> None:
    shares = {"forward": 0.4, "backward": 0.3, "optimizer": 0.1, "device": 0.05, "wait": 0.1}

    assert gap_share(shares) == pytest.approx(0.15)
    assert gap_share({"forward": 0.7, "backward": 0.4}) == 0.0
