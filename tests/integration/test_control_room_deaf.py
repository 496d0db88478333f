"""Clients of the control room that stop reading: nothing of them stays in the server."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from launch.control_room import connections, event_stream, places
from launch.control_room.places import Holder
from tests.run_folders import make_run
from tests.served_room import served_room
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

EVENTS = b"GET /api/runs/r/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
LARGE = b"GET /vendor/uplot/uPlot.esm.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
PICTURE = b"GET /api/runs/r/levels/1-1/picture HTTP/1.1\r\nHost: localhost\r\n\r\n"
PICTURE_BYTES = 8 * 2**20
REQUESTS = 60


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(connections, "SEND_DEADLINE_S", 1.0)
    monkeypatch.setattr(event_stream, "SEND_DEADLINE_S", 1.0)
    maps = make_run(tmp_path).root / "maps"
    maps.mkdir(exist_ok=True)
    (maps / "1-1.png").write_bytes(bytes(PICTURE_BYTES))
    (maps / "1-1.json").write_text('{"area": 1, "x0": 0, "width": 1, "height": 1}')
    with served_room(tmp_path) as port:
        yield port


def served(port: int) -> int:
    """Connections that the server holds."""
    mine = psutil.Process().net_connections("tcp")
    return sum(one.laddr.port == port and one.status != psutil.CONN_LISTEN for one in mine)


def connected(port: int, buffer_bytes: int = 4_096) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    client.settimeout(10.0)
    client.connect(("127.0.0.1", port))
    return client


def test_a_stream_that_nobody_reads_is_cut(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "POLL_S", 0.0)
    monkeypatch.setattr(
        event_stream.SharedEvents, "look", lambda _: (str(time.monotonic()), b"x" * 2**20)
    )
    with connected(port) as deaf:
        deaf.sendall(EVENTS)
        wait_until("it is served", lambda: served(port) == 1)

        wait_until("its connection is gone", lambda: served(port) == 0)


@pytest.mark.parametrize(
    "last", [b"", LARGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")]
)
def test_answers_that_nobody_reads_are_cut(port: int, last: bytes) -> None:
    with connected(port) as deaf:
        deaf.sendall(LARGE * REQUESTS + last)
        wait_until("it is served", lambda: served(port) == 1)

        wait_until("its connection is gone", lambda: served(port) == 0)


def test_who_reads_slowly_gets_everything(port: int) -> None:
    with connected(port, 65_536) as slow:
        slow.sendall(LARGE * REQUESTS)
        began_s, received = time.monotonic(), 0
        while received < REQUESTS * 145_000:
            if time.monotonic() - began_s < 2.5:
                time.sleep(0.02)
            piece = slow.recv(65_536)
            assert piece
            received += len(piece)


def test_one_large_answer_that_is_read_slowly_arrives_whole(port: int) -> None:
    """Much later than one that is not read would be cut."""
    with connected(port, 65_536) as slow:
        slow.sendall(PICTURE)
        received = 0
        while received < PICTURE_BYTES:
            time.sleep(0.02)
            piece = slow.recv(65_536)
            assert piece
            received += len(piece)


def test_who_is_still_being_sent_an_answer_gives_no_place(port: int) -> None:
    idle: list[float] = []

    def noted(address: str, holders: list[Holder], others: int) -> str:
        idle.extend(holder.idle_s for holder in holders)
        return places.judge_newcomer(address, holders, others)

    with connected(port) as busy, pytest.MonkeyPatch.context() as patch:
        busy.sendall(PICTURE)
        time.sleep(0.5)
        patch.setattr(connections, "judge_newcomer", noted)
        with connected(port):
            wait_until("the newcomer was judged", lambda: bool(idle), 5.0)

    assert idle == [0.0]


def test_who_gives_way_while_it_does_not_read_is_gone_at_once(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "SEND_DEADLINE_S", 1_000.0)
    monkeypatch.setattr(connections, "who_gives_way", lambda holders: 0 if holders else None)
    with connected(port) as deaf:
        deaf.sendall(LARGE * REQUESTS)
        time.sleep(0.5)
        with connected(port):
            wait_until("only the newcomer is there", lambda: served(port) == 1, 5.0)
