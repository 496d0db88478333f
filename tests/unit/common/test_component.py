from __future__ import annotations

import logging

import pytest

from common.component import WaitLog, run_component
from common.errors import ExitCode, PeerUnavailable
from common.lifecycle import StopFlag
from tests.fake_clock import FakeClock


class FakeComponent:
    """Ticks a number of times, then is done; notes what was called."""

    def __init__(self, ticks: int, fails_at: int | None = None) -> None:
        self.calls: list[str] = []
        self._left = ticks
        self._fails_at = fails_at

    @property
    def is_done(self) -> bool:
        return self._left == 0

    def waits_for(self) -> str | None:
        return None

    def tick(self) -> bool:
        self.calls.append("tick")
        self._left -= 1
        if self._left == self._fails_at:
            raise PeerUnavailable("gone")
        return True

    def finish(self, deadline_s: float) -> None:
        self.calls.append(f"finish {deadline_s}")

    def close(self) -> None:
        self.calls.append("close")


def test_it_ticks_until_done_then_finishes_and_closes() -> None:
    component = FakeComponent(ticks=3)

    code = run_component(component, StopFlag(), finish_deadline_s=2.0)

    assert code == ExitCode.DONE
    assert component.calls == ["tick", "tick", "tick", "finish 2.0", "close"]


def test_a_request_to_stop_finishes_before_the_next_tick() -> None:
    component, stop = FakeComponent(ticks=3), StopFlag()
    stop.request()

    code = run_component(component, stop, finish_deadline_s=1.0)

    assert code == ExitCode.DONE
    assert component.calls == ["finish 1.0", "close"]


def test_an_error_closes_and_rises() -> None:
    component = FakeComponent(ticks=3, fails_at=1)

    with pytest.raises(PeerUnavailable):
        run_component(component, StopFlag(), finish_deadline_s=1.0)

    assert component.calls == ["tick", "tick", "close"]


def test_the_loss_of_the_parent_finishes_and_closes() -> None:
    component = FakeComponent(ticks=3)

    # No process has the number 0, so our parent is surely another one.
    run_component(component, StopFlag(parent_pid=0), finish_deadline_s=1.0)

    assert component.calls == ["tick", "finish 1.0", "close"]


def test_waiting_is_told_after_a_while_and_then_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    waiting = WaitLog(clock)

    with caplog.at_level(logging.INFO):
        for _ in range(70):
            waiting.note("weights from the learner")
            clock.advance(1.0)

    assert [record.getMessage() for record in caplog.records] == ["waiting", "waiting"]
    assert getattr(caplog.records[0], "for") == "weights from the learner"


def test_short_waits_are_not_worth_a_line(caplog: pytest.LogCaptureFixture) -> None:
    clock = FakeClock()
    waiting = WaitLog(clock)

    with caplog.at_level(logging.INFO):
        for step in range(40):
            waiting.note("batches" if step % 2 else None)
            clock.advance(1.5)

    assert caplog.records == []
