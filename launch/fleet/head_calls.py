"""Calls that the head of Ray has to answer, made beside our own thread.

While the head is gone Ray waits inside some of them, deaf to signals, and at last ends the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Generic, TypeVar

from common.errors import PeerUnavailable

PATIENCE_S = 15.0
"""For an answer of the head, which may be busy, or out of reach for a moment."""
GLANCE_S = 0.5
"""For one of a head that is well; a later one is taken at a later look."""

Answer = TypeVar("Answer")
Clock = Callable[[], float]


def call_beside(call: Callable[[], Answer]) -> Future[Answer]:
    """In a thread of its own, which the end of the process does not wait for."""
    future: Future[Answer] = Future()

    def fill() -> None:
        try:
            future.set_result(call())
        except Exception as error:  # it belongs to whoever takes the answer
            future.set_exception(error)

    threading.Thread(target=fill, daemon=True).start()
    return future


def ends_within(call: Callable[[], object], timeout_s: float) -> bool:
    """Whether the call has come back in time; its error is raised here."""
    called = call_beside(call)
    wait([called], timeout_s)
    if called.done():
        called.result()
    return called.done()


class RepeatedQuestion(Generic[Answer]):
    """Asked again and again, one at a time; the answer before holds while the next is awaited."""

    def __init__(self, question: Callable[[], Answer], clock: Clock = time.monotonic) -> None:
        self._question = question
        self._clock = clock
        self._asked: Future[Answer] | None = None
        self._asked_s = 0.0
        self._known: list[Answer] = []

    def answer(self) -> Answer:
        if self._asked is None:
            self._asked, self._asked_s = call_beside(self._question), self._clock()
        wait([self._asked], GLANCE_S if self._known else PATIENCE_S)
        if self._asked.done():
            asked, self._asked = self._asked, None
            self._known = [asked.result()]
        elif not self._known or self._clock() - self._asked_s >= PATIENCE_S:
            raise PeerUnavailable(f"the head of Ray has not answered for {PATIENCE_S:.0f} s")
        return self._known[0]
