from __future__ import annotations

import threading

import pytest

from replay_server.cut import Cut
from replay_server.cut_keeper import CutKeeper
from tests.cut_factory import cut_of, make_buffer

DEADLINE_S = 10.0


class HeldWriter:
    """Writes when it is told to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.may_write = threading.Event()
        self.written: list[int] = []
        self._error = error

    def write(self, cut: Cut) -> None:
        assert self.may_write.wait(DEADLINE_S)
        if self._error is not None:
            raise self._error
        self.written.append(cut.agent_steps)


def cut_at(agent_steps: int) -> Cut:
    return cut_of(make_buffer(), agent_steps)


def test_a_second_cut_is_not_taken_while_the_first_is_being_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    writer = HeldWriter()
    keeper = CutKeeper(writer)
    keeper.keep(lambda: cut_at(1))

    keeper.keep(lambda: pytest.fail("taken"))
    writer.may_write.set()
    keeper.finish(DEADLINE_S)

    assert writer.written == [1]
    assert (keeper.counts.written, keeper.counts.passed_over) == (1, 1)
    assert "still being written" in caplog.text


def test_the_end_waits_for_the_cut_that_is_being_written() -> None:
    writer = HeldWriter()
    keeper = CutKeeper(writer)
    keeper.keep(lambda: cut_at(1))
    threading.Timer(0.2, writer.may_write.set).start()

    keeper.finish(DEADLINE_S)

    assert writer.written == [1]


def test_an_end_that_cannot_wait_says_so(caplog: pytest.LogCaptureFixture) -> None:
    writer = HeldWriter()
    keeper = CutKeeper(writer)
    keeper.keep(lambda: cut_at(1))

    keeper.finish(0.05)
    writer.may_write.set()
    keeper.finish(DEADLINE_S)

    assert "not finished in time" in caplog.text


def test_a_full_disk_is_counted_and_the_next_cut_is_tried() -> None:
    writer = HeldWriter(OSError(28, "No space left on device"))
    writer.may_write.set()
    keeper = CutKeeper(writer, in_background=False)

    keeper.keep(lambda: cut_at(1))
    keeper.keep(lambda: cut_at(2))

    assert (keeper.counts.failed, keeper.counts.written) == (2, 0)
    assert "No space left" in str(keeper.counts.last_error)
    assert keeper.metrics()["replay_cuts_failed_total"] == 2
