"""A thread beside the learner's own, for work that nothing waits for at once.

Threads inside torch's operations meet in every one of them, some two hundred times per update, and
wait there whenever an actor has one of their cores. These two meet a few times per update, and who
comes first does what the other has not begun.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, Protocol, TypeVar

import torch

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Answer(Protocol[T_co]):
    """What becomes of a piece of work. One of the two is called, by the thread that began it."""

    def __call__(self) -> T_co:
        """What was found; waits where it has to, or does work that was not begun."""
        ...

    def drop(self) -> None:
        """It is not wanted any more. Afterwards nothing reads what was given to the work."""
        ...


class Aside(Protocol):
    """Does work at once or meanwhile; the answer is the same."""

    def begin(self, work: Callable[[], T]) -> Answer[T]: ...

    def close(self) -> None: ...


class Done(Generic[T]):
    """The answer of work that was done at once."""

    def __init__(self, found: T) -> None:
        self._found = found

    def __call__(self) -> T:
        return self._found

    def drop(self) -> None:
        """It was done before anybody could change their mind."""


class Later(Generic[T]):
    """The answer of work that whoever asks for it does then."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work

    def __call__(self) -> T:
        return self._work()

    def drop(self) -> None:
        """It was not begun."""


class AtOnce:
    """There is no second thread, or a device that does one thing after the other."""

    def begin(self, work: Callable[[], T]) -> Answer[T]:
        return Done(work())

    def close(self) -> None:
        """There is nothing to end."""


class Meanwhile(Generic[T]):
    """The answer of work that the second thread does, unless it is asked for before it begins."""

    def __init__(self, future: Future[T], work: Callable[[], T]) -> None:
        self._future = future
        self._work = work

    def __call__(self) -> T:
        return self._work() if self._future.cancel() else self._future.result()

    def drop(self) -> None:
        if not self._future.cancel():
            wait([self._future])


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
        return Meanwhile(self._pool.submit(work), work)

    def close(self) -> None:
        self._pool.shutdown()
