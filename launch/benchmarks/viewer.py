"""Viewers of a control room without a browser: they ask for what an open page asks for, as often.

What is shown is not drawn, so the cost of a browser is not in what they measure. They stand for
people at other machines: their threads have the lowest priority, so that they take from a run what
it leaves, while the control room has its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Final

LIVE_PERIOD_S: Final = 0.2
LEAST_PAUSE_S: Final = 0.04
LIST_PERIOD_S: Final = 10.0
"""The periods are those of `assets/js/live.js` and `app.js`."""
TIMEOUT_S: Final = 30.0
LOWEST_PRIORITY: Final = 19
OK: Final = 200
ENDED: Final = "the stream of events has ended"
Work = Callable[[HTTPConnection], None]


def connect(port: int) -> HTTPConnection:
    return HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)


def get(connection: HTTPConnection, path: str) -> bytes:
    """The content; the connection stays open for the next question."""
    connection.request("GET", path)
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != OK:
        raise HTTPException(f"{answer.status} at {path}")
    return content


@dataclass(slots=True)
class Viewer:
    """One open page, in two threads; what goes wrong is kept in `errors`."""

    port: int
    run: str
    peers: tuple[str, ...] = ()
    """Actors in its live view; without any it looks at figures only."""
    events: int = 0
    frames: int = 0
    errors: list[str] = field(default_factory=list)
    _closed: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)
    _line: socket.socket | None = None
    _versions: dict[str, str] = field(default_factory=dict)

    def open(self) -> None:
        for work in (self._follow, self._ask):
            thread = threading.Thread(target=self._guarded, args=(work,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._line is not None:
            # Whoever waits for the next event stops waiting.
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(TIMEOUT_S)

    def _guarded(self, work: Work) -> None:
        # On Linux that is the priority of this thread alone.
        os.nice(LOWEST_PRIORITY)
        connection = connect(self.port)
        try:
            work(connection)
        except (OSError, HTTPException, ValueError) as error:
            if not self._closed.is_set():
                self.errors.append(f"{type(error).__name__}: {error}")
        finally:
            connection.close()

    def _follow(self, connection: HTTPConnection) -> None:
        connection.connect()
        self._line = connection.sock
        connection.request("GET", f"/api/runs/{self.run}/events")
        answer = connection.getresponse()
        if answer.status != OK:
            raise HTTPException(f"{answer.status} for events")
        while not self._closed.is_set():
            line = answer.readline()
            if not line:
                raise HTTPException(ENDED)
            self.events += line.startswith(b"event: state")

    def _ask(self, connection: HTTPConnection) -> None:
        listed_s = float("-inf")
        period_s = LIVE_PERIOD_S if self.peers else LIST_PERIOD_S
        while not self._closed.is_set():
            began_s = time.monotonic()
            if began_s - listed_s >= LIST_PERIOD_S:
                listed_s = began_s
                get(connection, "/api/runs")
            if self.peers:
                self._look(connection)
            took_s = time.monotonic() - began_s
            self._closed.wait(max(LEAST_PAUSE_S, period_s - took_s))

    def _look(self, connection: HTTPConnection) -> None:
        base = f"/api/runs/{self.run}/live"
        told = json.loads(get(connection, f"{base}?peers={','.join(self.peers)}"))
        for actor in told["actors"]:
            peer, version = str(actor["peer"]), str(actor["version"])
            if actor["fresh"] and version != self._versions.get(peer):
                self._versions[peer] = version
                get(connection, f"{base}/{peer}/frame")
                self.frames += 1


@contextlib.contextmanager
def opened(viewers: Sequence[Viewer]) -> Iterator[Sequence[Viewer]]:
    """All of them look until the block ends."""
    try:
        for viewer in viewers:
            viewer.open()
        yield viewers
    finally:
        for viewer in viewers:
            viewer.close()
