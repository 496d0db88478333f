"""A thread beside the learner's own, for passes of the networks that wait for nothing.

Threads inside torch's operations meet in every one of them, some two hundred times per update, and
wait there whenever an actor has one of their cores. These two meet twice.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

import torch

T = TypeVar("T")
Answer = Callable[[], T]
"""Waits where it has to."""


class Aside(Protocol):
    """Does work at once or meanwhile; the answer is the same."""

    def begin(self, work: Callable[[], T]) -> Answer[T]: ...

    def close(self) -> None: ...


class AtOnce:
    """There is no second thread, or a device that does one thing after the other."""

    def begin(self, work: Callable[[], T]) -> Answer[T]:
        done = work()
        return lambda: done

    def close(self) -> None:
        """There is nothing to end."""


class SecondThread:
    """One piece of work after the other, in the order in which they were begun."""

    def __init__(self, torch_threads: int = 1) -> None:
        self._pool = ThreadPoolExecutor(
            1,
            thread_name_prefix="second",
            initializer=torch.set_num_threads,
            initargs=(torch_threads,),
        )

    def begin(self, work: Callable[[], T]) -> Answer[T]:
        future: Future[T] = self._pool.submit(work)
        return future.result

    def close(self) -> None:
        self._pool.shutdown()
