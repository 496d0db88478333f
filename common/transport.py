"""ZeroMQ sockets behind the interfaces of `common/channels.py`; the only user of zmq.

Every queue has a bound, every wait a timeout, no socket lingers. The context is made here, in the
process that uses it: it must never cross a fork.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

import zmq

from common.channels import Frames
from common.codec import Buffer
from common.endpoints import check_bind, check_connect
from common.errors import ConfigError
from common.messages import MAX_FRAME_BYTES

log = logging.getLogger(__name__)

MIN_LIBZMQ = (4, 3, 5)
# Copying is cheaper than pyzmq's bookkeeping for zero-copy up to tens of kilobytes.
ZERO_COPY_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketOptions:
    """Bounds that hold for every socket."""

    high_water_messages: int = 64
    linger_ms: int = 0
    heartbeat_interval_ms: int = 1_000
    heartbeat_timeout_ms: int = 3_000
    handshake_timeout_ms: int = 5_000
    reconnect_ms: int = 100
    reconnect_max_ms: int = 5_000


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


def _receive(socket: zmq.Socket[bytes], timeout_ms: int) -> list[Buffer] | None:
    if timeout_ms > 0 and not socket.poll(timeout_ms):
        return None
    try:
        parts = socket.recv_multipart(flags=zmq.DONTWAIT, copy=False)
    except zmq.Again:
        return None
    return [part.buffer for part in parts]


class ZmqDealer:
    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def send(self, frames: Frames) -> bool:
        return _send(self._socket, frames)

    def receive(self, timeout_ms: int) -> Frames | None:
        return _receive(self._socket, timeout_ms)

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqRouter:
    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def receive(self, timeout_ms: int) -> tuple[bytes, Frames] | None:
        frames = _receive(self._socket, timeout_ms)
        return None if frames is None else (bytes(frames[0]), frames[1:])

    def send(self, peer: bytes, frames: Frames) -> bool:
        return _send(self._socket, [peer, *frames])

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqPublisher:
    """XPUB: a subscription arrives as a message, which is when the last value is sent again."""

    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket
        self._last: Buffer | None = None

    def publish(self, frame: Buffer) -> None:
        self._last = frame
        self._socket.send(frame, flags=zmq.DONTWAIT, copy=len(frame) < ZERO_COPY_BYTES)

    def pump(self) -> int:
        newcomers = 0
        while (event := _receive(self._socket, 0)) is not None:
            newcomers += bytes(event[0])[:1] == b"\x01"
        if newcomers and self._last is not None:
            self.publish(self._last)
        return newcomers

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqSubscriber:
    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def newest(self, timeout_ms: int) -> Buffer | None:
        frames = _receive(self._socket, timeout_ms)
        return None if frames is None else frames[0]

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqPusher:
    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def send(self, frames: Frames) -> bool:
        return _send(self._socket, frames)

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqPuller:
    def __init__(self, socket: zmq.Socket[bytes]) -> None:
        self._socket = socket

    def receive(self, timeout_ms: int) -> Frames | None:
        return _receive(self._socket, timeout_ms)

    def close(self) -> None:
        self._socket.close(linger=0)


class ZmqNetwork:
    """Makes sockets with the same bounds everywhere and closes them all."""

    def __init__(self, options: SocketOptions | None = None) -> None:
        if zmq.zmq_version_info() < MIN_LIBZMQ:
            raise ConfigError(
                f"libzmq {zmq.zmq_version()} has known holes; install pyzmq with libzmq 4.3.5"
            )
        self._options = options or SocketOptions()
        self._context = zmq.Context()

    def dealer(self, endpoint: str, identity: str) -> ZmqDealer:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            socket.setsockopt(zmq.ROUTING_ID, identity.encode())

        return ZmqDealer(self._connect(zmq.DEALER, endpoint, prepare))

    def router(self, endpoint: str) -> ZmqRouter:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            # A restarted actor must not be locked out by its half-open predecessor.
            socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
            socket.setsockopt(zmq.ROUTER_MANDATORY, 1)

        return ZmqRouter(self._bind(zmq.ROUTER, endpoint, prepare))

    def publisher(self, endpoint: str) -> ZmqPublisher:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            # Every subscription is an event, also the second one with the same topic.
            socket.setsockopt(zmq.XPUB_VERBOSE, 1)
            socket.setsockopt(zmq.SNDHWM, 2)

        return ZmqPublisher(self._bind(zmq.XPUB, endpoint, prepare))

    def subscriber(self, endpoint: str) -> ZmqSubscriber:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            # A full queue would drop what is newest, and a slow actor play with old weights.
            socket.setsockopt(zmq.CONFLATE, 1)
            socket.setsockopt(zmq.SUBSCRIBE, b"")

        return ZmqSubscriber(self._connect(zmq.SUB, endpoint, prepare))

    def pusher(self, endpoint: str) -> ZmqPusher:
        return ZmqPusher(self._connect(zmq.PUSH, endpoint))

    def puller(self, endpoint: str) -> ZmqPuller:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            socket.setsockopt(zmq.RCVHWM, 1_000)

        return ZmqPuller(self._bind(zmq.PULL, endpoint, prepare))

    def close(self) -> None:
        self._context.destroy(linger=0)

    def _socket(self, kind: int) -> zmq.Socket[bytes]:
        options = self._options
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        settings = {
            zmq.LINGER: options.linger_ms,
            zmq.SNDHWM: options.high_water_messages,
            zmq.RCVHWM: options.high_water_messages,
            zmq.MAXMSGSIZE: MAX_FRAME_BYTES,
            zmq.HEARTBEAT_IVL: options.heartbeat_interval_ms,
            zmq.HEARTBEAT_TIMEOUT: options.heartbeat_timeout_ms,
            zmq.HEARTBEAT_TTL: options.heartbeat_timeout_ms,
            zmq.HANDSHAKE_IVL: options.handshake_timeout_ms,
            zmq.RECONNECT_IVL: options.reconnect_ms,
            zmq.RECONNECT_IVL_MAX: options.reconnect_max_ms,
            zmq.IPV6: 1,
        }
        for option, value in settings.items():
            socket.setsockopt(option, value)
        return socket

    def _bind(
        self,
        kind: int,
        endpoint: str,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _: None,
    ) -> zmq.Socket[bytes]:
        check_bind(endpoint)
        socket = self._socket(kind)
        prepare(socket)
        try:
            socket.bind(endpoint)
        except zmq.ZMQError as error:
            socket.close(linger=0)
            raise ConfigError(
                f"cannot bind {endpoint}: {error.strerror}; is another run using it?"
            ) from error
        return socket

    def _connect(
        self,
        kind: int,
        endpoint: str,
        prepare: Callable[[zmq.Socket[bytes]], None] = lambda _: None,
    ) -> zmq.Socket[bytes]:
        check_connect(endpoint)
        socket = self._socket(kind)
        prepare(socket)
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as error:
            socket.close(linger=0)
            raise ConfigError(f"cannot connect to {endpoint}: {error.strerror}") from error
        return socket
