"""A cable between a client and a server that can be damaged: a TCP proxy in threads."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Literal

Fault = Literal["none", "flips", "slow", "mute"]
CHUNK_BYTES = 16 * 1024
FLIP_EVERY_BYTES = 40_000
SLOW_BYTES_PER_S = 30_000


class BadCable:
    """Listens at `port` on loopback and passes everything on, as well as `fault` lets it."""

    def __init__(self, target_port: int) -> None:
        self.fault: Fault = "none"
        self.flipped = 0
        """Bytes that did not arrive as they were sent."""
        self.connections = 0
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
        for words in ((client, server, is_mute, True), (server, client, is_mute, False)):
            threading.Thread(target=self._pass_on, args=words, daemon=True).start()

    def _pass_on(
        self,
        source: socket.socket,
        target: socket.socket,
        is_mute: threading.Event,
        may_flip: bool,
    ) -> None:
        carried = 0
        with suppress(OSError):
            while chunk := bytearray(source.recv(CHUNK_BYTES)):
                carried += len(chunk)
                if self.fault == "mute":
                    # This connection stays open and is never heard again.
                    is_mute.set()
                if self.fault == "flips" and may_flip and carried > FLIP_EVERY_BYTES:
                    chunk[len(chunk) // 2] ^= 0xFF
                    carried, self.flipped = 0, self.flipped + 1
                if self.fault == "slow":
                    time.sleep(len(chunk) / SLOW_BYTES_PER_S)
                if not is_mute.is_set():
                    target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
