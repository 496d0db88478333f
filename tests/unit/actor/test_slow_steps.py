from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from actor.slow_steps import SlowStepJudge, SlowStepLimits, SlowStepTrace
from tests.fake_clock import FakeClock
from tests.waiting import eventually

LIMITS = SlowStepLimits(threshold_s=0.5, window_s=60.0, count=3)


def traced(judge: SlowStepJudge, slow_at_s: list[float]) -> list[bool]:
    return [judge.note(0.6, now_s) for now_s in slow_at_s]


def test_several_slow_steps_within_the_window_leave_a_trace() -> None:
    assert traced(SlowStepJudge(LIMITS), [0, 10, 59]) == [False, False, True]


def test_slow_steps_far_apart_leave_none() -> None:
    judge = SlowStepJudge(LIMITS)

    assert traced(judge, [0, 40, 80, 120, 160]) == 5 * [False]
    assert judge.total == 5


def test_there_is_one_trace_for_each_window() -> None:
    judge = SlowStepJudge(LIMITS)

    assert traced(judge, [0, 1, 2, 3, 4, 61.9, 62]) == [False, False, True, *3 * [False], True]


def test_a_step_at_the_threshold_is_not_slow() -> None:
    judge = SlowStepJudge(LIMITS)

    assert [judge.note(0.5, 1.0) for _ in range(9)] == 9 * [False]
    assert judge.total == 0


def test_a_trace_is_expected_only_where_one_more_slow_step_would_leave_it() -> None:
    judge = SlowStepJudge(LIMITS)
    expected = []
    for now_s in (0.0, 1.0, 2.0):
        expected.append(judge.expects_trace(now_s))
        judge.note(0.6, now_s)

    assert expected == [False, False, True]
    assert not judge.expects_trace(3.0)
    # The three slow steps have left the window before the trace has.
    assert not judge.expects_trace(62.5)


def test_one_slow_step_may_be_enough() -> None:
    judge = SlowStepJudge(SlowStepLimits(threshold_s=0.5, window_s=10.0, count=1))

    assert judge.expects_trace(0.0)
    assert traced(judge, [0, 5, 10]) == [True, False, True]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def trace(tmp_path: Path, clock: FakeClock) -> Iterator[SlowStepTrace]:
    trace = SlowStepTrace(LIMITS, tmp_path / "diagnostics", who="actor-1", clock=clock)
    yield trace
    trace.close()


def files(folder: Path) -> list[str]:
    return [path.read_text() for path in sorted(folder.rglob("slow_step_trace_*.log"))]


def slowly(clock: FakeClock) -> Callable[[], str]:
    """By a clock that the watchdog does not know."""

    def play() -> str:
        clock.advance(1.0)
        return "played"

    return play


def test_what_is_played_is_returned_and_counted_when_it_was_slow(
    trace: SlowStepTrace, clock: FakeClock, tmp_path: Path
) -> None:
    assert trace.watch(lambda: "quick") == "quick"
    assert trace.watch(slowly(clock)) == "played"
    assert trace.total == 1
    assert files(tmp_path) == []


def test_the_stacks_of_all_threads_go_to_a_file_once_per_window(
    trace: SlowStepTrace, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(9):
            trace.watch(slowly(clock))
    (first,) = files(tmp_path)
    clock.advance(60.0)
    for _ in range(3):
        trace.watch(slowly(clock))

    assert trace.total == 12
    assert [record.getMessage() for record in caplog.records] == 2 * ["[actor] slow steps"]
    for text in (first, files(tmp_path)[1]):
        head, stacks = text.split("\n", 1)
        assert head.startswith("actor-1: an agent step took 1.000 s")
        assert "most recent call first" in stacks
        assert "test_slow_steps.py" in stacks


def test_the_stacks_are_those_of_the_step_while_it_is_slow(tmp_path: Path) -> None:
    limits = SlowStepLimits(threshold_s=0.01, window_s=60.0, count=2)
    trace = SlowStepTrace(limits, tmp_path, who="actor-1")

    def doze_in_the_emulator() -> None:
        eventually(lambda: os.fstat(trace._stacks.fileno()).st_size > 0)

    trace.watch(lambda: time.sleep(0.02))
    trace.watch(doze_in_the_emulator)
    trace.close()

    (text,) = files(tmp_path)
    assert "doze_in_the_emulator" in text


def test_a_step_that_lasts_beyond_the_window_of_a_trace_has_stacks_of_its_own(
    trace: SlowStepTrace, clock: FakeClock, tmp_path: Path
) -> None:
    def watch_the_last() -> None:
        trace.watch(lambda: clock.advance(58.5))

    for _ in range(5):
        trace.watch(lambda: clock.advance(1.0))
    watch_the_last()

    first, second = files(tmp_path)
    assert second.startswith("actor-1: an agent step took 58.500 s, slow steps so far: 6\n")
    assert "watch_the_last" not in first
    assert "watch_the_last" in second


def test_a_step_that_fails_leaves_no_watchdog(tmp_path: Path, clock: FakeClock) -> None:
    limits = SlowStepLimits(threshold_s=0.02, window_s=60.0, count=1)
    trace = SlowStepTrace(limits, tmp_path, who="actor-1", clock=clock)

    def fail() -> None:
        raise RuntimeError("the emulator is gone")

    with pytest.raises(RuntimeError, match="gone"):
        trace.watch(fail)
    time.sleep(0.06)

    assert trace._stacks.seek(0, os.SEEK_END) == 0
    trace.close()


def test_a_folder_that_cannot_be_written_is_told_and_play_goes_on(
    tmp_path: Path, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("not a folder")
    trace = SlowStepTrace(LIMITS, tmp_path / "file", who="actor-1", clock=clock)

    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert trace.watch(slowly(clock)) == "played"
    trace.close()

    assert [record.getMessage() for record in caplog.records] == [
        "[actor] slow steps, but no trace of them"
    ]
