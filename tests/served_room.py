"""A control room served over loopback by real uvicorn, in a thread of the test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from launch.control_room.app import make_app
from launch.control_room.event_stream import StreamCount
from launch.control_room.library import Library
from launch.control_room.security import Rules
from launch.control_room.server import listen, make_server
from tests.waiting import wait_until


@contextmanager
def served_room(
    folder: Path, rules: Rules | None = None, streams: StreamCount | None = None
) -> Iterator[int]:
    """The port."""
    listener = listen("127.0.0.1", 0)
    port: int = listener.getsockname()[1]
    streams = streams or StreamCount()
    server = make_server(make_app(Library(folder), rules or Rules(), streams), streams)
    thread = threading.Thread(target=lambda: server.run(sockets=[listener]), daemon=True)
    thread.start()
    try:
        wait_until("the control room serves", lambda: server.started)
        yield port
    finally:
        server.should_exit = True
        thread.join(10.0)
        listener.close()
    assert not thread.is_alive()


def raw_request(port: int, request: bytes, timeout_s: float = 10.0) -> bytes:
    """All that comes back for bytes that no library would send."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while piece := connection.recv(65_536):
                answer += piece
                if b"\r\n\r\n" in answer and b"connection: close" not in request.lower():
                    break
        except ConnectionResetError:
            pass
    return answer


def status_of(answer: bytes) -> int:
    """0 when the connection was closed without an answer."""
    parts = answer.split(b" ", 2)
    return int(parts[1]) if len(parts) > 1 else 0
