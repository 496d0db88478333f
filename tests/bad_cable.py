"""A cable between a client and a server that can be damaged: a TCP proxy in threads.

It follows the framing of ZeroMQ (ZMTP 3, without keys), so that it knows what it damages: `flips`
changes one byte of every few messages of the client, in the header as often as in an array, and
never a byte of the framing; `framing` changes only that.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

Fault = Literal["none", "flips", "framing", "slow", "mute"]
CHUNK_BYTES = 16 * 1024
SLOW_BYTES_PER_S = 30_000
FLIP_SHARE = 0.2
"""Of the messages, by their headers, and again of those with arrays."""
FRAMING_SHARE = 0.02
GREETING_BYTES = 64
MORE, LONG, COMMAND = 1, 2, 4


@dataclass
class Damage:
    """What did not arrive as it was sent."""

    headers: int = 0
    arrays: int = 0
    framing: int = 0

    @property
    def messages(self) -> int:
        """Each of which has one byte that is wrong."""
        return self.headers + self.arrays


@dataclass
class FrameFollower:
    """Where the frames of one direction of one line begin, whatever the chunks are."""

    rng: random.Random
    damage: Damage
    _skip: int = GREETING_BYTES
    """Bytes until the next frame begins."""
    _flip_in: int = -1
    """Bytes until the one that is to be changed; negative: none."""
    _prefix: bytearray = field(default_factory=bytearray)
    _frame_number: int = 0
    """Within its message."""
    _is_hit: bool = False
    """This message has its wrong byte."""

    def pass_through(self, chunk: bytearray, fault: Fault) -> None:
        """Change what `fault` wants changed."""
        at = 0
        while at < len(chunk):
            if self._skip:
                at += self._pass_body(chunk, at)
                continue
            byte = chunk[at]
            if fault == "framing" and self.rng.random() < FRAMING_SHARE:
                chunk[at] ^= 1 << self.rng.randrange(8)
                self.damage.framing += 1
            self._prefix.append(byte)
            at += 1
            if len(self._prefix) == (9 if self._prefix[0] & LONG else 2):
                self._begin_frame(fault)

    def _pass_body(self, chunk: bytearray, at: int) -> int:
        size = min(self._skip, len(chunk) - at)
        if 0 <= self._flip_in < size:
            chunk[at + self._flip_in] ^= self.rng.randrange(1, 256)
        self._flip_in -= size
        self._skip -= size
        return size

    def _begin_frame(self, fault: Fault) -> None:
        flags, self._skip = self._prefix[0], int.from_bytes(self._prefix[1:], "big")
        self._prefix.clear()
        self._flip_in = -1
        if flags & COMMAND:
            return
        if fault == "flips" and not self._is_hit and self._skip and self._is_chosen():
            self._flip_in, self._is_hit = self.rng.randrange(self._skip), True
            self.damage.headers += self._frame_number == 0
            self.damage.arrays += self._frame_number > 0
        self._frame_number += 1
        if not flags & MORE:
            self._frame_number, self._is_hit = 0, False

    def _is_chosen(self) -> bool:
        # One array in eight, because a block has eight.
        return self.rng.random() < (FLIP_SHARE if self._frame_number == 0 else FLIP_SHARE / 8)


class BadCable:
    """Listens at `port` on loopback and passes everything on, as well as `fault` lets it."""

    def __init__(self, target_port: int, seed: int = 1) -> None:
        self.fault: Fault = "none"
        self.damage = Damage()
        self.connections = 0
        self._rng = random.Random(seed)
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._open.append(client)
                self._connect(client)

    def _connect(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._target_port))
        except OSError:
            client.close()
            return
        self.connections += 1
        self._open.append(server)
        is_mute = threading.Event()
        follower = FrameFollower(self._rng, self.damage)
        for words in ((client, server, is_mute, follower), (server, client, is_mute, None)):
            threading.Thread(target=self._pass_on, args=words, daemon=True).start()

    def _pass_on(
        self,
        source: socket.socket,
        target: socket.socket,
        is_mute: threading.Event,
        follower: FrameFollower | None,
    ) -> None:
        with suppress(OSError):
            while chunk := bytearray(source.recv(CHUNK_BYTES)):
                if self.fault == "mute":
                    # This connection stays open and is never heard again.
                    is_mute.set()
                if follower is not None:
                    follower.pass_through(chunk, self.fault)
                if self.fault == "slow":
                    time.sleep(len(chunk) / SLOW_BYTES_PER_S)
                if not is_mute.is_set():
                    target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
