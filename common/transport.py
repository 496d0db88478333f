"""Makes the ZeroMQ sockets; only this file and those named `common/transport_*.py` use zmq.

Every queue has a bound, every wait a timeout, no socket lingers. The context is made here, in the
process that uses it: it must never cross a fork. With keys every tcp socket is encrypted, loopback
included, so that one address has one rule; ipc is private by its folder.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import zmq

from common.endpoints import check_endpoint
from common.errors import ConfigError, EndpointTaken, MarioError
from common.keys import KeyFolder
from common.lifecycle import RESTARTED_VARIABLE
from common.messages import MAX_FRAME_BYTES, MAX_HEADER_BYTES
from common.transport_channels import (
    Check,
    ZmqDealer,
    ZmqPublisher,
    ZmqPuller,
    ZmqPusher,
    ZmqRouter,
    ZmqSubscriber,
)
from common.transport_guard import Guard

MIN_LIBZMQ = (4, 3, 5)
MAX_SUBSCRIPTION_BYTES = 512
"""One byte would do; a handshake with keys needs some hundreds."""
# What encryption adds to a frame.
ENVELOPE_BYTES = 64

BIND_HINTS = {
    errno.EADDRINUSE: "is another run using it?",
    errno.ENOENT: "make its folder first, or choose another endpoint",
    errno.ENODEV: "choose an address of this machine",
    errno.EADDRNOTAVAIL: "choose an address of this machine",
}

Prepare = Callable[[zmq.Socket[bytes]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketOptions:
    """Bounds that hold for every socket."""

    high_water_messages: int = 64
    linger_ms: int = 0
    heartbeat_interval_ms: int = 1_000
    heartbeat_timeout_ms: int = 3_000
    bulk_timeout_ms: int = 15_000
    """For a server that blocks are sent to: a client's sign of life waits behind them, and a line
    that is given up in the middle of a block only brings it once more."""
    handshake_timeout_ms: int = 5_000
    reconnect_ms: int = 100
    reconnect_max_ms: int = 2_000
    connect_timeout_ms: int = 2_000
    """Without it an attempt during an outage waits for TCP's own retries, up to a minute."""
    backlog: int = 1_024
    """Connections that wait to be accepted: all actors come at once when a server was restarted."""


class ZmqNetwork:
    """Makes sockets with the same bounds everywhere and closes them all."""

    def __init__(self, options: SocketOptions | None = None, *, keys_dir: str = "") -> None:
        """`keys_dir` is a folder of `launch/keys.py`; without one nothing leaves this machine."""
        if zmq.zmq_version_info() < MIN_LIBZMQ:
            raise ConfigError(
                f"libzmq {zmq.zmq_version()} has known holes; install pyzmq with libzmq 4.3.5"
            )
        self._options = options or SocketOptions()
        keys = KeyFolder.of(keys_dir) if keys_dir else None
        self._context = zmq.Context()
        try:
            self._guard = None if keys is None else Guard(self._context, keys)
        except ConfigError:
            self._context.term()
            raise

    def dealer(self, endpoint: str, identity: str) -> ZmqDealer:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            socket.setsockopt(zmq.ROUTING_ID, identity.encode())
            # How long the server waits; we notice a server that is silent as soon as on any line.
            socket.setsockopt(zmq.HEARTBEAT_TTL, self._options.bulk_timeout_ms)

        return ZmqDealer(self._connect(zmq.DEALER, endpoint, prepare), self._check_of(endpoint))

    def router(self, endpoint: str) -> ZmqRouter:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            # A restarted actor must not be locked out by its half-open predecessor.
            socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
            socket.setsockopt(zmq.ROUTER_MANDATORY, 1)
            socket.setsockopt(zmq.HEARTBEAT_TIMEOUT, self._options.bulk_timeout_ms)

        return ZmqRouter(self._bind(zmq.ROUTER, endpoint, prepare), self._guard_of(endpoint))

    def publisher(self, endpoint: str) -> ZmqPublisher:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            # Every subscription is an event, also the second one with the same topic. libzmq keeps
            # each topic that a peer names, so `ZmqPublisher` ends a peer's game with odd ones.
            socket.setsockopt(zmq.XPUB_VERBOSE, 1)
            socket.setsockopt(zmq.XPUB_MANUAL, 1)
            socket.setsockopt(zmq.SNDHWM, 2)
            socket.setsockopt(zmq.RCVHWM, 2)
            socket.setsockopt(zmq.MAXMSGSIZE, MAX_SUBSCRIPTION_BYTES)

        def open_socket() -> zmq.Socket[bytes]:
            return self._bind(zmq.XPUB, endpoint, prepare)

        # A local socket cannot be opened anew: libzmq removes the file when the old one is gone,
        # and it would be that of the new one. Its folder says who may come.
        may_reopen = not endpoint.startswith("ipc://")
        return ZmqPublisher(open_socket, self._guard_of(endpoint), may_reopen=may_reopen)

    def subscriber(self, endpoint: str) -> ZmqSubscriber:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            # A full queue would drop what is newest, and a slow actor play with old weights.
            socket.setsockopt(zmq.CONFLATE, 1)
            socket.setsockopt(zmq.SUBSCRIBE, b"")

        return ZmqSubscriber(self._connect(zmq.SUB, endpoint, prepare), self._check_of(endpoint))

    def pusher(self, endpoint: str) -> ZmqPusher:
        return ZmqPusher(self._connect(zmq.PUSH, endpoint), self._check_of(endpoint))

    def puller(self, endpoint: str) -> ZmqPuller:
        def prepare(socket: zmq.Socket[bytes]) -> None:
            # Of each peer; its messages are small and rare, and a hostile one must not fill memory.
            socket.setsockopt(zmq.RCVHWM, 128)
            # Telemetry has no arrays.
            socket.setsockopt(zmq.MAXMSGSIZE, MAX_HEADER_BYTES + ENVELOPE_BYTES)

        return ZmqPuller(self._bind(zmq.PULL, endpoint, prepare), self._guard_of(endpoint))

    def close(self) -> None:
        if self._guard is not None:
            self._guard.close()
        self._context.destroy(linger=0)

    def _guard_of(self, endpoint: str) -> Guard | None:
        """Local sockets need none: their folder is private."""
        return self._guard if endpoint.startswith("tcp://") else None

    def _check_of(self, endpoint: str) -> Check:
        guard = self._guard_of(endpoint)
        return (lambda: None) if guard is None else partial(guard.check, endpoint)

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
            zmq.CONNECT_TIMEOUT: options.connect_timeout_ms,
            zmq.BACKLOG: options.backlog,
            zmq.IPV6: 1,
        }
        for option, value in settings.items():
            socket.setsockopt(option, value)
        return socket

    def _bind(
        self, kind: int, endpoint: str, prepare: Prepare = lambda _: None
    ) -> zmq.Socket[bytes]:
        socket = self._prepared(kind, endpoint, prepare, is_server=True)
        try:
            socket.bind(endpoint)
            if guard := self._guard_of(endpoint):
                guard.await_hold(endpoint)
        except zmq.ZMQError as error:
            socket.close(linger=0)
            raise _bind_error(endpoint, error) from error
        return socket

    def _connect(
        self, kind: int, endpoint: str, prepare: Prepare = lambda _: None
    ) -> zmq.Socket[bytes]:
        socket = self._prepared(kind, endpoint, prepare, is_server=False)
        try:
            socket.connect(endpoint)
        except zmq.ZMQError as error:
            socket.close(linger=0)
            raise ConfigError(f"cannot connect to {endpoint}: {error.strerror}") from error
        return socket

    def _prepared(
        self, kind: int, endpoint: str, prepare: Prepare, *, is_server: bool
    ) -> zmq.Socket[bytes]:
        check_endpoint(endpoint, has_keys=self._guard is not None)
        socket = self._socket(kind)
        try:
            prepare(socket)
            if guard := self._guard_of(endpoint):
                guard.protect(socket, endpoint, is_server=is_server)
        except BaseException:
            socket.close(linger=0)
            raise
        return socket


def _bind_error(endpoint: str, error: zmq.ZMQError) -> MarioError:
    """A process that had this port before may find it free again.

    In its first life somebody has to choose another endpoint.
    """
    hint = BIND_HINTS.get(error.errno or 0, "choose another endpoint")
    words = f"cannot bind {endpoint}: {error.strerror}; {hint}"
    may_pass = error.errno == errno.EADDRINUSE and RESTARTED_VARIABLE in os.environ
    return EndpointTaken(words) if may_pass else ConfigError(words)
