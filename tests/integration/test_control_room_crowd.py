"""The control room with its real limits, as a process of its own, and more than they allow."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from tests.processes import address_in, end, start
from tests.run_folders import make_run
from tests.served_room import status_of
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

EVENTS = b"GET /api/runs/r/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
CROWD = 500
STREAMS = 200
MOST_GROWTH_MB = 40.0


@dataclass(frozen=True, slots=True)
class Room:
    port: int
    process: psutil.Process

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=10.0)

    def has_visitors(self) -> bool:
        return any(one.status != psutil.CONN_LISTEN for one in self.process.net_connections())

    def rss_mb(self) -> float:
        return float(self.process.memory_info().rss) / 2**20


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    make_run(tmp_path)
    process = start("launch/dashboard.py", str(tmp_path), "--port", "0")
    try:
        port = int(address_in(process.stdout).rpartition(":")[2])
        yield Room(port, psutil.Process(process.pid))
    finally:
        end(process)


def crowd(stack: ExitStack, port: int, count: int, request: bytes = b"") -> list[socket.socket]:
    viewers = []
    for _ in range(count):
        viewer = socket.create_connection(("127.0.0.1", port), timeout=30.0)
        viewers.append(stack.enter_context(viewer))
        viewer.sendall(request)
    return viewers


def first_words(viewer: socket.socket) -> bytes:
    """Up to the first event of a stream, or all of an answer."""
    said = b""
    while b"event: state" not in said and b"503" not in said[:16]:
        piece = viewer.recv(65_536)
        if not piece:
            break
        said += piece
    return said


def stream_status(port: int) -> int:
    with socket.create_connection(("127.0.0.1", port), timeout=10.0) as viewer:
        viewer.sendall(EVENTS)
        return status_of(first_words(viewer))


def test_of_500_viewers_at_once_200_are_served_and_the_others_told_to_come_later(
    room: Room,
) -> None:
    stream_status(room.port)
    # Until the room has let go of this one, it is counted among the streams.
    wait_until("nobody is there", lambda: not room.has_visitors())
    before_mb = room.rss_mb()
    with ExitStack() as stack:
        viewers = crowd(stack, room.port, CROWD, EVENTS)
        answers = Counter(status_of(first_words(viewer)) for viewer in viewers)
        grown_mb = room.rss_mb() - before_mb
        # A page that has asked for nothing yet finds a place beside them.
        wait_until("a place", lambda: room.get("/api/runs").status_code == 200)
        refused = stream_status(room.port)

    wait_until("a new stream", lambda: stream_status(room.port) == 200)

    assert answers == {200: STREAMS, 503: CROWD - STREAMS}
    assert refused == 503
    assert grown_mb < MOST_GROWTH_MB
    assert room.get("/api/runs/r/state").status_code == 200


def test_connections_that_ask_for_nothing_do_not_keep_others_out(room: Room) -> None:
    with ExitStack() as stack:
        crowd(stack, room.port, 420)
        time.sleep(2.5)

        began_s = time.monotonic()
        answers = [room.get("/api/runs").status_code for _ in range(20)]
        took_s = time.monotonic() - began_s

    assert answers == [200] * 20
    assert took_s < 5.0
