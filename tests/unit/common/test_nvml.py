"""The watch over a reader that fails; a driver library is in tests/integration/test_nvml_driver."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from common import nvml
from common.nvml import GpuWatch, Reading
from tests.waiting import eventually

DEADLINE_S = 5.0


@contextmanager
def watching(read: Callable[[], list[Reading]]) -> Iterator[GpuWatch]:
    watch = GpuWatch(0.001, read)
    try:
        yield watch
    finally:
        watch.close()


def test_the_last_reading_is_returned() -> None:
    numbers = iter(range(1_000_000))

    with watching(lambda: [{"index": 0, "util_percent": next(numbers)}]) as watch:
        eventually(lambda: watch.last()[0] is not None)
        first, _ = watch.last()
        eventually(lambda: watch.last()[0] != first)


def test_any_error_of_the_driver_becomes_a_reason_and_passes() -> None:
    broken = threading.Event()
    broken.set()

    def read() -> list[Reading]:
        if broken.is_set():
            raise OSError("x" * 1_000)
        return [{"index": 0}]

    with watching(read) as watch:
        eventually(lambda: "OSError" in str(watch.last()[1]))
        assert watch.last()[0] is None
        assert len(str(watch.last()[1])) <= 300

        broken.clear()
        eventually(lambda: watch.last() == ([{"index": 0}], None))


def test_before_the_first_reading_there_is_a_reason() -> None:
    release = threading.Event()

    def read() -> list[Reading]:
        release.wait(DEADLINE_S)
        return []

    with watching(read) as watch:
        assert watch.last() == (None, "no reading yet")
        release.set()


def test_old_readings_are_not_passed_off_as_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "STALE_AFTER_S", 0.02)
    release, calls = threading.Event(), iter(range(10))

    def read() -> list[Reading]:
        if next(calls) > 0:
            release.wait(DEADLINE_S)
        return [{"index": 0}]

    with watching(read) as watch:
        eventually(lambda: "NVML has not answered" in str(watch.last()[1]))
        assert watch.last()[0] is None
        release.set()


def test_close_ends_the_thread() -> None:
    with watching(lambda: [{"index": 0}]) as watch:
        pass

    assert not watch._thread.is_alive()
