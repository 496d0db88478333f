"""A head of Ray that does not answer, played by functions that do not come back."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from common.errors import PeerUnavailable
from launch.fleet import head_calls
from launch.fleet.head_calls import PATIENCE_S, RepeatedQuestion, ends_within
from tests.fake_clock import FakeClock


class Head:
    def __init__(self) -> None:
        self.is_back = threading.Event()
        self.is_back.set()
        self.asked = 0

    def nodes(self) -> int:
        self.asked += 1
        self.is_back.wait(30.0)
        return self.asked


@pytest.fixture
def head(monkeypatch: pytest.MonkeyPatch) -> Iterator[Head]:
    monkeypatch.setattr(head_calls, "GLANCE_S", 0.01)
    head = Head()
    yield head
    head.is_back.set()


def test_a_head_that_is_gone_is_noticed_while_the_driver_goes_on(head: Head) -> None:
    clock = FakeClock()
    question = RepeatedQuestion(head.nodes, clock)
    assert question.answer() == 1
    head.is_back.clear()

    # What was known holds for a while, and nobody is asked twice at once.
    assert question.answer() == 1
    clock.advance(PATIENCE_S - 0.1)
    assert question.answer() == 1
    assert head.asked == 2

    clock.advance(0.2)
    with pytest.raises(PeerUnavailable, match="the head of Ray has not answered for 15 s"):
        question.answer()


def test_a_head_that_was_slow_is_forgiven(head: Head, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock()
    question = RepeatedQuestion(head.nodes, clock)
    assert question.answer() == 1
    head.is_back.clear()
    question.answer()
    clock.advance(PATIENCE_S - 1.0)

    head.is_back.set()
    monkeypatch.setattr(head_calls, "GLANCE_S", 5.0)

    assert question.answer() == 2
    clock.advance(10 * PATIENCE_S)
    assert question.answer() == 3


def test_the_first_answer_is_waited_for_and_not_for_ever(
    head: Head, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_calls, "PATIENCE_S", 0.05)
    head.is_back.clear()

    with pytest.raises(PeerUnavailable):
        RepeatedQuestion(head.nodes, FakeClock()).answer()


def test_what_went_wrong_beside_us_is_raised_here() -> None:
    def fail() -> None:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        RepeatedQuestion(fail).answer()
    with pytest.raises(ValueError, match="refused"):
        ends_within(fail, 5.0)


def test_a_call_that_does_not_come_back_is_left(head: Head) -> None:
    assert ends_within(head.nodes, 5.0)

    head.is_back.clear()

    assert not ends_within(head.nodes, 0.01)
