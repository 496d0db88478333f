"""The guard at the door: who may connect, and a word about those who were turned away.

One thread in a process with keys. It answers the questions that libzmq asks about a key (ZAP,
RFC 27) and reads what libzmq tells of connections. It alone uses the sockets made here; the other
threads read `revocations` and ask `is_allowed`.
"""

from __future__ import annotations

import logging
import os
import queue
import resource
import socket as sockets
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import zmq
from zmq.utils import z85
from zmq.utils.monitor import parse_monitor_message

from common.errors import ConfigError
from common.keys import MAX_CONNECTIONS, AllowedKeys, KeyFolder
from common.logs import RareLog
from common.transport_keys import lock_client, lock_server, require_curve

log = logging.getLogger(__name__)

ZAP_ENDPOINT = "inproc://zeromq.zap.01"
BELL_ENDPOINT = "inproc://guard-bell"
POLL_MS = 100
RECHECK_INTERVAL_S = 0.5
CLOSE_TIMEOUT_S = 5.0
UNKNOWN_ADDRESS = "unknown"
ACCEPTED, TEMPORARY, REFUSED = b"200", b"300", b"400"
"""Answers to libzmq; after a temporary one the peer tries again."""
KEY_REFUSED = "our key is not allowed there; run launch/keys.py add-actor on its machine"
NO_KEYS_THERE = "it has no keys; give it --keys-dir"
WATCHED_EVENTS = (
    zmq.EVENT_LISTENING
    | zmq.EVENT_ACCEPTED
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_MONITOR_STOPPED
)
UNFINISHED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
FINAL = zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
"""After these libzmq does not connect again by itself."""
GREETING_BYTES = 4_096
"""More than a peer says before it must wait for our answer."""


@dataclass(slots=True, eq=False)
class Watch:
    """What libzmq told of one of our sockets."""

    events: zmq.Socket[bytes]
    endpoint: str
    is_server: bool
    addresses: dict[int, str] = field(default_factory=dict)
    """Peers by file descriptor, from being accepted until they are gone."""
    is_held: threading.Event = field(default_factory=threading.Event)
    """From here on no peer is answered before we have noted who it is."""
    has_failed: bool = False
    """The connection whose end is told next: libzmq does both in one go."""


def connection_limit() -> int:
    """Half of the files that this process may open: strangers must not use up the rest."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(MAX_CONNECTIONS, soft // 2)


def objection(allowed: AllowedKeys, mechanism: bytes, key: bytes) -> str:
    """Why a peer may not come in; empty when it may."""
    if mechanism != b"CURVE":
        return "no key"
    if key in allowed.names:
        return ""
    name = allowed.revoked.get(key)
    return "unknown key" if name is None else f"revoked key of {name}"


class Guard:
    """Made before the first socket of its context is bound, closed before the context."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], folder: KeyFolder) -> None:
        require_curve()
        self.revocations = 0
        """Grows when a key is taken from the allow-list."""
        self._context = context
        self._folder = folder
        self._limit = connection_limit()
        self._allowed = _first_list(folder) if folder.is_server else AllowedKeys()
        self._checked_s = time.monotonic()
        self._rare = RareLog()
        self._refusals: dict[str, str] = {}
        self._new_watches: queue.SimpleQueue[Watch] = queue.SimpleQueue()
        self._watches: dict[zmq.Socket[bytes], Watch] = {}
        self._binding: dict[str, threading.Event] = {}
        self._stop = threading.Event()
        self._zap = context.socket(zmq.REP)
        self._zap.bind(ZAP_ENDPOINT)
        self._bell, self._rope = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
        self._bell.bind(BELL_ENDPOINT)
        self._rope.connect(BELL_ENDPOINT)
        self._thread = threading.Thread(target=self._run, name="guard", daemon=True)
        self._thread.start()

    def protect(self, socket: zmq.Socket[bytes], endpoint: str, *, is_server: bool) -> None:
        """Encrypt a socket and tell of failures; before the socket is bound or connected."""
        self._refusals.pop(endpoint, None)
        (lock_server if is_server else lock_client)(socket, self._folder)
        address = f"inproc://guard-{id(socket)}-{time.monotonic_ns()}"
        socket.monitor(address, WATCHED_EVENTS)
        events = self._context.socket(zmq.PAIR)
        events.connect(address)
        watch = Watch(events, endpoint, is_server)
        if is_server:
            self._binding[endpoint] = watch.is_held
        self._new_watches.put(watch)
        self._ring()

    def await_hold(self, endpoint: str) -> None:
        """Wait until peers of a socket that was just bound are held back: a moment."""
        self._binding.pop(endpoint).wait(CLOSE_TIMEOUT_S)

    def is_allowed(self, key: bytes) -> bool:
        """Whether a peer that came in may stay; noticed within `RECHECK_INTERVAL_S`."""
        allowed = self._allowed
        if key in allowed.names:
            return True
        peer = allowed.revoked.get(key, "a removed key")
        if self._rare.allows(peer, time.monotonic()):
            log.warning("message of a revoked key dropped", extra={"peer": peer})
        return False

    def check(self, endpoint: str) -> None:
        """Raise when the server at an endpoint does not want us: waiting would not help."""
        reason = self._refusals.get(endpoint)
        if reason is not None:
            raise ConfigError(f"no encrypted line to {endpoint}: {reason}")

    def close(self) -> None:
        self._stop.set()
        self._ring()
        self._thread.join(CLOSE_TIMEOUT_S)
        self._rope.close(linger=0)

    def _ring(self) -> None:
        # Never waits: a thread that is awake anyhow may have seen the end and taken the bell along.
        with suppress(zmq.Again):
            self._rope.send(b"", zmq.NOBLOCK)

    def _run(self) -> None:
        poller = zmq.Poller()
        poller.register(self._zap, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        while not self._stop.is_set():
            self._take_watches(poller)
            for ready, _ in poller.poll(POLL_MS):
                if ready is self._zap:
                    self._answer()
                elif ready is self._bell:
                    self._bell.recv()
                elif not self._note(self._watches[ready]):
                    poller.unregister(ready)
                    self._watches.pop(ready).events.close(linger=0)
            self._recheck()
        self._take_watches(poller)
        for socket in (self._zap, self._bell, *self._watches):
            socket.close(linger=0)

    def _take_watches(self, poller: zmq.Poller) -> None:
        with suppress(queue.Empty):
            while True:
                watch = self._new_watches.get_nowait()
                self._watches[watch.events] = watch
                poller.register(watch.events, zmq.POLLIN)

    def _answer(self) -> None:
        request = self._zap.recv_multipart()
        _, request_id, _, address, _, mechanism, *credentials = request
        key = z85.encode(credentials[0]) if credentials else b""
        allowed = self._fresh_list()
        reason = objection(allowed, mechanism, key)
        if reason:
            self._tell(plain_address(address.decode()), reason)
        verdict = TEMPORARY if not allowed.is_known else REFUSED if reason else ACCEPTED
        self._zap.send_multipart(zap_reply(request_id, verdict, key))

    def _note(self, watch: Watch) -> bool:
        """Draw the conclusions from an event; False when it was the last one."""
        told = parse_monitor_message(watch.events.recv_multipart())
        event, value = int(told["event"]), int(told["value"])
        if event == zmq.EVENT_MONITOR_STOPPED:
            return False
        if watch.is_server:
            self._note_server(watch, event, value)
        elif event & FINAL:
            is_ours = event == zmq.EVENT_HANDSHAKE_FAILED_AUTH
            self._refusals[watch.endpoint] = KEY_REFUSED if is_ours else NO_KEYS_THERE
        elif event & UNFINISHED and self._rare.allows(watch.endpoint, time.monotonic()):
            log.warning("no answer in the handshake", extra={"endpoint": watch.endpoint})
        return True

    def _note_server(self, watch: Watch, event: int, value: int) -> None:
        if event == zmq.EVENT_LISTENING:
            hold_back(value, GREETING_BYTES)
            watch.is_held.set()
        elif event == zmq.EVENT_ACCEPTED:
            watch.addresses[value] = peer_address(value)
            if sum(len(each.addresses) for each in self._watches.values()) > self._limit:
                self._tell(watch.addresses[value], f"more than {self._limit} connections")
                hang_up(value)
            hold_back(value, 1)
        elif event == zmq.EVENT_DISCONNECTED:
            address = watch.addresses.pop(value, UNKNOWN_ADDRESS)
            if watch.has_failed:
                self._tell(address, "no key for this server, or no handshake in time")
            watch.has_failed = False
        else:
            watch.has_failed = bool(event & UNFINISHED)

    def _recheck(self) -> None:
        now_s = time.monotonic()
        if self._folder.is_server and now_s - self._checked_s >= RECHECK_INTERVAL_S:
            self._checked_s = now_s
            self._fresh_list()

    def _fresh_list(self) -> AllowedKeys:
        """Whom to let in now. Who is in stays as long as the list cannot be read."""
        fresh = self._folder.allowed()
        for problem in fresh.problems:
            if self._rare.allows(problem, time.monotonic()):
                log.warning("part of the allow-list is not used", extra={"reason": problem})
        if fresh.is_known:
            gone = self._allowed.names.keys() - fresh.names.keys()
            self._allowed = fresh
            self.revocations += bool(gone)
        return fresh

    def _tell(self, address: str, reason: str) -> None:
        if self._rare.allows(f"{address} {reason}", time.monotonic()):
            log.warning("connection refused", extra={"address": address, "reason": reason})


def _first_list(folder: KeyFolder) -> AllowedKeys:
    allowed = folder.allowed()
    if allowed.problems:
        raise ConfigError(allowed.problems[0])
    return allowed


def zap_reply(request_id: bytes, verdict: bytes, key: bytes) -> Sequence[bytes]:
    """The key becomes the user id of every message over that connection."""
    return [b"1.0", request_id, verdict, b"", key if verdict == ACCEPTED else b"", b""]


def peer_address(descriptor: int) -> str:
    """Who is at the other end; a connection may be gone before we look."""
    try:
        with sockets.socket(fileno=os.dup(descriptor)) as peer:
            return plain_address(str(peer.getpeername()[0]))
    except (OSError, IndexError):
        return UNKNOWN_ADDRESS


def hold_back(descriptor: int, size_bytes: int) -> None:
    """Let libzmq see what a peer says only from this size on; accepted sockets inherit it.

    Set on a listening socket, it keeps every handshake waiting until we have noted who is there:
    a peer without a key is gone within a tenth of a millisecond, and its address with it.
    """
    with suppress(OSError), sockets.socket(fileno=os.dup(descriptor)) as held:
        held.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVLOWAT, size_bytes)


def hang_up(descriptor: int) -> None:
    """End a connection; libzmq sees that and closes its side."""
    with suppress(OSError), sockets.socket(fileno=os.dup(descriptor)) as peer:
        peer.shutdown(sockets.SHUT_RDWR)


def plain_address(address: str) -> str:
    return address.removeprefix("::ffff:")
