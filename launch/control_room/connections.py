"""One connection of a viewer: it has a place or is told to come later, and must not dawdle."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

import h11
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from launch.control_room.event_stream import SEND_DEADLINE_S
from launch.control_room.places import Holder, judge_newcomer, who_gives_way
from launch.control_room.security import HEADERS

HEADER_DEADLINE_S: Final = 10.0
SENT_BYTES: Final = 128 * 1024
"""In the kernel and not yet read, which gives it twice that: it would take megabytes by itself, of
which a slow reader would have to read a third before it counted as one."""
NO_PLACE: Final = PlainTextResponse(
    "too many connections\n",
    status_code=503,
    headers={
        **{"retry-after": "10", "connection": "close", "cache-control": "no-store"},
        **{name.decode(): value.decode() for name, value in HEADERS},
    },
)


class PatientProtocol(H11Protocol):
    """Lets go of a connection that has begun a request head and not ended it in time.

    And of one whose client does not read: to close it is to wait until it has read everything. The
    first head has begun with the connection, a later one with its first byte: how long a
    connection may be silent between two requests is uvicorn's to watch.
    """

    _deadline: asyncio.TimerHandle | None = None
    _deaf: asyncio.TimerHandle | None = None
    _has_place = False
    _idle_from_s = 0.0
    """By the clock of the loop; bytes of a head that does not end are no sign of life."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        others = [other for other in self.connections if isinstance(other, PatientProtocol)]
        super().connection_made(transport)
        # Writing pauses as long as anything is unread, closed or not: `_deaf` watches all of it.
        transport.set_write_buffer_limits(high=0)
        peer: socket.socket = transport.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT_BYTES)
        self._idle_from_s = self.loop.time()
        self._watch_head(is_begun=True)
        self._take_place(others)

    def _take_place(self, others: list[PatientProtocol]) -> None:
        """At the beginning: uvicorn's own limit counts at a request, by when a burst is all there.

        It would refuse nearly everybody, and let nobody in while the refused have not left.
        """
        placed = [other for other in others if other._has_place]
        holders = [other.as_holder() for other in placed]
        verdict = judge_newcomer(self._address, holders, len(others) - len(placed))
        self._has_place = verdict == "serve"
        if verdict == "drop":
            self.transport.close()
        elif verdict == "refuse":
            self.app = NO_PLACE
        elif (number := who_gives_way(holders)) is not None:
            placed[number]._give_way()

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def as_holder(self) -> Holder:
        # Before the first request there is no cycle, whatever its type says.
        is_answered = bool(getattr(self.cycle, "response_complete", True))
        # An answer that is complete may still be on its way.
        is_idle = is_answered and not self.flow.write_paused
        idle_s = self.loop.time() - self._idle_from_s if is_idle else 0.0
        return Holder(address=self._address, idle_s=idle_s)

    def _give_way(self) -> None:
        self._has_place = False
        self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def resume_writing(self) -> None:
        self._forget_deaf()
        super().resume_writing()

    def _watch_reader(self) -> None:
        unread = self.transport.get_write_buffer_size()
        self._deaf = self.loop.call_later(SEND_DEADLINE_S, self._judge_reader, unread)

    def _judge_reader(self, unread_before: int) -> None:
        """Slowly is fast enough, as long as some of it is read."""
        if self.transport.get_write_buffer_size() < unread_before:
            self._watch_reader()
        else:
            self.transport.abort()

    def _forget_deaf(self) -> None:
        if self._deaf is not None:
            self._deaf.cancel()
            self._deaf = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head(is_begun=self._is_head_begun())

    def on_response_complete(self) -> None:
        self._idle_from_s = self.loop.time()
        super().on_response_complete()
        # The next request may have come together with the one before, or a part of it.
        self._watch_head(is_begun=self._is_head_begun())

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch_head(is_begun=False)
        self._forget_deaf()
        super().connection_lost(exc)

    def _is_head_begun(self) -> bool:
        is_first = self.cycle is None
        return self.conn.their_state is h11.IDLE and (is_first or bool(self.conn.trailing_data[0]))

    def _watch_head(self, *, is_begun: bool) -> None:
        """Bytes that come while a head is begun do not put off its end."""
        if is_begun and self._deadline is None:
            self._deadline = self.loop.call_later(HEADER_DEADLINE_S, self.transport.close)
        elif not is_begun and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
