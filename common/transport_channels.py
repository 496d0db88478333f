"""One class per kind of socket; `common/transport.py` makes them and sets their bounds."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

import zmq

from common.channels import Frames
from common.codec import Buffer
from common.errors import ConfigError, EndpointTaken
from common.logs import RareLog
from common.messages import MAX_ARRAYS

log = logging.getLogger(__name__)

# Copying is cheaper than pyzmq's bookkeeping for zero-copy up to tens of kilobytes.
ZERO_COPY_BYTES = 64 * 1024
# A routing id, a header and the arrays; one more is kept, so that the decoder sees the excess.
MAX_KEPT_FRAMES = MAX_ARRAYS + 3


class Gatekeeper(Protocol):
    """Asked by servers about every message: a key may be revoked while its owner is connected."""

    @property
    def revocations(self) -> int: ...

    def is_allowed(self, key: bytes) -> bool: ...


Check = Callable[[], None]
"""Called by clients before they wait; raises when the server has turned them away for good."""


def _send(socket: zmq.Socket[bytes], frames: Frames) -> bool:
    try:
        socket.send_multipart(frames, flags=zmq.DONTWAIT, copy=_may_copy(frames))
    except (zmq.Again, zmq.error.ZMQError) as error:
        if error.errno in (zmq.EAGAIN, zmq.EHOSTUNREACH):
            return False
        raise
    return True


def _may_copy(frames: Frames) -> bool:
    return max(len(frame) for frame in frames) < ZERO_COPY_BYTES


def _receive(
    socket: zmq.Socket[bytes], timeout_ms: int, guard: Gatekeeper | None = None
) -> list[Buffer] | None:
    has_news = socket.poll(timeout_ms) if timeout_ms > 0 else _has_news(socket)
    if not has_news:
        return None
    try:
        part = socket.recv(flags=zmq.DONTWAIT, copy=False)
    except zmq.Again:
        return None
    kept = [part]
    while part.more:
        # The parts of a message arrive together, so this does not wait.
        part = socket.recv(copy=False)
        if len(kept) < MAX_KEPT_FRAMES:
            kept.append(part)
    if guard is not None and not guard.is_allowed(_key_of(part)):
        return None
    return [frame.buffer for frame in kept]


def _has_news(socket: zmq.Socket[bytes]) -> bool:
    """Loops look in every turn, so not by a receive that fails: that costs more than double."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


def _key_of(frame: zmq.Frame) -> bytes:
    """The public key of the sender, which the guard made its user id."""
    try:
        return str(frame.get("User-Id")).encode()
    except zmq.ZMQError:
        return b""


class ZmqDealer:
    def __init__(self, socket: zmq.Socket[bytes], check: Check) -> None:
        self._socket = socket
        self._check = check

    def send(self, frames: Frames) -> bool:
        return _send(self._socket, frames)

    def receive(self, timeout_ms: int) -> Frames | None:
        self._check()
        return _receive(self._socket, timeout_ms)

    def join(self, poller: zmq.Poller) -> zmq.Socket[bytes]:
        """Let somebody who has many lines wait for all of them at once; the key in his poller."""
        poller.register(self._socket, zmq.POLLIN)
        return self._socket

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqRouter:
    """What comes from a peer that the guard refuses is dropped, one message per call."""

    def __init__(self, socket: zmq.Socket[bytes], guard: Gatekeeper | None) -> None:
        self._socket = socket
        self._guard = guard

    def receive(self, timeout_ms: int) -> tuple[bytes, Frames] | None:
        frames = _receive(self._socket, timeout_ms, self._guard)
        return None if frames is None else (bytes(frames[0]), frames[1:])

    def send(self, peer: bytes, frames: Frames) -> bool:
        return _send(self._socket, [peer, *frames])

    def close(self) -> None:
        self._socket.close(linger=0)


EVERYTHING = b"\x01"
"""The one subscription there is: all topics."""
NOTHING_MORE = b"\x00"
"""Its end."""
MAX_ODD_EVENTS = 256
"""Subscriptions that nobody of ours makes, before the socket is opened anew: libzmq remembers every
topic, at dozens of bytes for each of its bytes, until the socket is closed."""


class ZmqPublisher:
    """XPUB: a subscription arrives as a message, which is when the last value is sent again.

    When a key is revoked, or somebody asks for many topics, the socket is closed and opened anew:
    whoever may still listen comes back by itself and is sent the last value.
    """

    def __init__(
        self,
        open_socket: Callable[[], zmq.Socket[bytes]],
        guard: Gatekeeper | None,
        *,
        may_reopen: bool,
    ) -> None:
        self._open_socket = open_socket
        self._may_reopen = may_reopen
        self._guard = guard
        self._revocations = 0 if guard is None else guard.revocations
        self._socket: zmq.Socket[bytes] | None = open_socket()
        self._is_reopening = False
        self._last: Buffer | None = None
        self.odd_events = 0
        """Subscriptions to topics that do not exist, and messages that are none."""
        self._odd_since_opened = 0
        self._rare = RareLog()

    def publish(self, frame: Buffer) -> None:
        self._last = frame
        if self._socket is not None:
            self._socket.send(frame, flags=zmq.DONTWAIT, copy=len(frame) < ZERO_COPY_BYTES)

    def pump(self) -> int:
        if self._guard is not None and self._guard.revocations != self._revocations:
            self._revocations = self._guard.revocations
            self._begin_anew("a key was revoked")
        if self._is_reopening:
            self._reopen()
        newcomers = self._hear()
        if newcomers and self._last is not None:
            self.publish(self._last)
        return newcomers

    def _hear(self) -> int:
        """Take what subscribers say; how many of them are new."""
        newcomers = 0
        while self._socket is not None and (event := _receive(self._socket, 0)) is not None:
            said = bytes(event[0])
            if said == EVERYTHING:
                self._socket.setsockopt(zmq.SUBSCRIBE, b"")
                newcomers += 1
            elif said != NOTHING_MORE:
                self.odd_events += 1
                self._odd_since_opened += 1
                if self._may_reopen and self._odd_since_opened >= MAX_ODD_EVENTS:
                    self._begin_anew("odd subscriptions")
        return newcomers

    def _begin_anew(self, why: str) -> None:
        self.close()
        self._is_reopening = True
        self._odd_since_opened = 0
        if self._rare.allows(why, time.monotonic()):
            log.info("weights socket opened anew", extra={"why": why})

    def close(self) -> None:
        self._is_reopening = False
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None

    def _reopen(self) -> None:
        # libzmq closes in the background; until the address is free the next call tries again.
        try:
            self._socket = self._open_socket()
            self._is_reopening = False
        except (ConfigError, EndpointTaken) as error:
            if self._rare.allows("reopen", time.monotonic()):
                log.info("weights socket waits for its address", extra={"waits_for": str(error)})


class ZmqSubscriber:
    def __init__(self, socket: zmq.Socket[bytes], check: Check) -> None:
        self._socket = socket
        self._check = check

    def newest(self, timeout_ms: int) -> Buffer | None:
        self._check()
        frames = _receive(self._socket, timeout_ms)
        return None if frames is None else frames[0]

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqPusher:
    def __init__(self, socket: zmq.Socket[bytes], check: Check) -> None:
        self._socket = socket
        self._check = check

    def send(self, frames: Frames) -> bool:
        self._check()
        return _send(self._socket, frames)

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqPuller:
    """Drops what `ZmqRouter` drops."""

    def __init__(self, socket: zmq.Socket[bytes], guard: Gatekeeper | None) -> None:
        self._socket = socket
        self._guard = guard

    def receive(self, timeout_ms: int) -> Frames | None:
        return _receive(self._socket, timeout_ms, self._guard)

    def close(self) -> None:
        self._socket.close(linger=0)
