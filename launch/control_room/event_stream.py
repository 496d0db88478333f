"""Server-sent events: the state of a run whenever it changed, to many viewers.

Every event is the whole state, and its id says which: a viewer that comes back with the id it saw
last misses nothing and gets nothing twice. One that stops reading is let go.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from common.logs import RareLog
from launch.control_room.json_answers import as_json
from launch.control_room.run_reader import RunReader

log = logging.getLogger(__name__)

MAX_STREAMS: Final = 200
POLL_S: Final = 0.5
MAX_EVENTS_PER_S: Final = 100
"""Of all streams together: a crowd is told less often, and costs the run beside it no more."""
KEEP_ALIVE_S: Final = 15.0
SEND_DEADLINE_S: Final = 20.0
RETRY_MS: Final = 2_000
CLOCK_HEADER: Final = "x-unix-time-s"


class StreamCount:
    """How many viewers there are; beyond `limit` no one is let in."""

    def __init__(self, limit: int = MAX_STREAMS) -> None:
        self.limit = limit
        self.open = 0
        self.ending = asyncio.Event()
        """The control room ends, and every stream with it: it does not wait for their next look."""

    @property
    def is_full(self) -> bool:
        return self.open >= self.limit

    @property
    def pause_s(self) -> float:
        """Of one stream, between two looks at what is new."""
        return max(POLL_S, self.open / MAX_EVENTS_PER_S)


class SharedEvents:
    """The newest event of a run as bytes, made once for all its viewers."""

    def __init__(self, reader: RunReader, life: str) -> None:
        self._reader = reader
        self._life = life
        """Tells this start of the control room from others: revisions begin anew."""
        self._made: tuple[str, bytes] = ("", b"")
        self._look: asyncio.Future[tuple[str, bytes]] | None = None
        self._look_again_s = 0.0
        """By the clock of the loop."""
        self._rare = RareLog()

    async def newest(self) -> tuple[str, bytes]:
        """Id and bytes of the event; one look serves all who ask until the next is due.

        The bytes are empty while no look has succeeded.
        """
        now_s = asyncio.get_running_loop().time()
        if self._look is None or (self._look.done() and now_s >= self._look_again_s):
            self._look_again_s = now_s + POLL_S
            self._look = asyncio.ensure_future(asyncio.to_thread(self.look))
        # Whoever leaves while waiting must not take the look from the others.
        return await asyncio.shield(self._look)

    def look(self) -> tuple[str, bytes]:
        """Looks at files: not for the thread of the loop."""
        try:
            return self._look_now()
        except Exception as error:
            # Whatever is odd in a folder of somebody else: its viewers stay, and see what was last.
            name = self._reader.paths.root.name
            if self._rare.allows(type(error).__name__, time.monotonic()):
                log.warning("run cannot be read", extra={"run_name": name}, exc_info=error)
            return self._made

    def _look_now(self) -> tuple[str, bytes]:
        self._reader.look()
        if not self._reader.revision:
            return self._made  # Another has looked a moment ago, and failed.
        event_id = f"{self._life}-{self._reader.revision}"
        if self._made[0] != event_id:
            head = f"id: {event_id}\nevent: state\ndata: ".encode()
            self._made = (event_id, head + as_json(self._reader.state()) + b"\n\n")
        return self._made


class NobodyReads(Exception):
    """The viewer stopped reading, or its connection broke: both mean that nobody looks."""


class EventStream(Response):
    """Ends when the viewer goes, stops reading, the run is deleted, or the control room ends."""

    media_type = "text/event-stream"

    def __init__(
        self, events: SharedEvents, count: StreamCount, seen: str, is_there: Callable[[], bool]
    ) -> None:
        # The clock by which heartbeats are judged is ours, which the browser's may differ from.
        clock = {CLOCK_HEADER: f"{time.time():.3f}"}
        super().__init__(headers={**clock, "cache-control": "no-store", "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._events, self._count, self._seen, self._is_there = events, count, seen, is_there

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        self._count.open += 1
        gone = asyncio.ensure_future(_disconnected(receive))
        ending = asyncio.ensure_future(self._count.ending.wait())
        try:
            start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
            await _send_in_time(send, start)
            await self._send(send, f"retry: {RETRY_MS}\n\n".encode())
            await self._follow(send, {gone, ending})
        except NobodyReads:
            pass
        finally:
            self._count.open -= 1
            gone.cancel()
            ending.cancel()

    async def _follow(self, send: Send, ends: set[asyncio.Future[Any]]) -> None:
        silent_s = 0.0
        while not any(end.done() for end in ends):
            event_id, event = await self._events.newest()
            if event and event_id != self._seen:
                self._seen, silent_s = event_id, 0.0
                await self._send(send, event)
            elif silent_s >= KEEP_ALIVE_S:
                silent_s = 0.0
                await self._send(send, b": still here\n\n")
            if not self._is_there():
                await self._send(send, b"event: gone\ndata: {}\n\n", more=False)
                return
            pause_s = self._count.pause_s
            await asyncio.wait(ends, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED)
            silent_s += pause_s
        await self._send(send, b"", more=False)

    async def _send(self, send: Send, body: bytes, *, more: bool = True) -> None:
        message: dict[str, Any] = {"type": "http.response.body", "body": body, "more_body": more}
        await _send_in_time(send, message)


async def _send_in_time(send: Send, message: dict[str, Any]) -> None:
    try:
        await asyncio.wait_for(send(message), SEND_DEADLINE_S)
    except (TimeoutError, OSError) as error:
        raise NobodyReads from error


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
