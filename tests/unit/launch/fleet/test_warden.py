"""A warden whose supervisor repeats its orders, ends between them, or does not read them."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from launch.fleet import warden as warden_module
from launch.fleet.gathering import PIECE_BYTES
from launch.fleet.orders import Orders, Plain, Report
from launch.fleet.warden import Warden

ORDERS = Orders(actors=[3], total=4, floor=7).to_plain()


@pytest.fixture
def supervisors(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """All that were started; each answers every order with the order itself."""
    started: list[subprocess.Popen[bytes]] = []
    start = Warden._start

    def note(warden: Warden) -> subprocess.Popen[bytes]:
        started.append(start(warden))
        return started[-1]

    monkeypatch.setattr(warden_module, "SUPERVISOR", ("cat",))
    monkeypatch.setattr(Warden, "_start", note)
    return started


@pytest.fixture
def warden(supervisors: list[subprocess.Popen[bytes]]) -> Iterator[Warden]:
    warden = Warden()
    yield warden
    warden.close()
    assert all(process.poll() is not None for process in supervisors)


def is_lost(answer: Plain) -> bool:
    return answer != ORDERS and Report.from_plain(answer).is_lost


def test_orders_go_to_one_supervisor_as_long_as_it_lives(
    warden: Warden, supervisors: list[subprocess.Popen[bytes]]
) -> None:
    assert [warden.tend(ORDERS), warden.tend(ORDERS)] == [ORDERS, ORDERS]
    assert len(supervisors) == 1


def test_every_end_between_two_orders_is_told_before_another_is_started(
    warden: Warden, supervisors: list[subprocess.Popen[bytes]]
) -> None:
    told = []
    for _ in range(3):
        warden.tend(ORDERS)
        supervisors[-1].kill()
        supervisors[-1].wait()
        told.append(is_lost(warden.tend(ORDERS)))

    assert told == [True, True, True]
    assert len(supervisors) == 3


def test_one_that_goes_without_an_answer_is_lost(
    warden: Warden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warden_module, "SUPERVISOR", ("head", "-c", "1", "/dev/null"))
    assert is_lost(warden.tend(ORDERS))

    monkeypatch.setattr(warden_module, "SUPERVISOR", ("cat",))

    assert warden.tend(ORDERS) == ORDERS


class Deaf:
    """Lives, and has closed the pipe of its orders."""

    def __init__(self) -> None:
        reading, writing = os.pipe()
        os.close(reading)
        self.stdin = os.fdopen(writing, "wb")
        self.stdout = io.BytesIO()
        self.is_gone = False

    def poll(self) -> int | None:
        return 1 if self.is_gone else None

    def wait(self, _: float | None = None) -> int:
        self.is_gone = True
        return 1


def test_orders_that_nobody_reads_are_no_error_when_the_pipe_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deaf = Deaf()
    monkeypatch.setattr(Warden, "_start", lambda _: deaf)

    assert is_lost(Warden().tend(ORDERS))
    assert (deaf.stdin.closed, deaf.stdout.closed, deaf.is_gone) == (True, True, True)


def test_each_time_files_are_read_another_one_is_the_first(warden: Warden, tmp_path: Path) -> None:
    chatty = b"x" * (PIECE_BYTES - 1) + b"\n"
    for index in range(3):
        path = tmp_path / "logs" / f"actor-{index}.log"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(chatty)

    first = [next(iter(warden.read_files(str(tmp_path), {}, False))) for _ in range(3)]

    assert sorted(first) == [f"logs/actor-{index}.log" for index in range(3)]
