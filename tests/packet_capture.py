"""Writes every packet of an interface to a file: `python -m tests.packet_capture INTERFACE FILE`.

Prints a line when it listens; ends when its standard output is closed or it is told to.
"""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

ALL_PROTOCOLS = 0x0003
MAX_PACKET_BYTES = 256 * 1024


def main() -> None:
    interface, file = sys.argv[1], Path(sys.argv[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as wire,
        file.open("wb", buffering=0) as output,
    ):
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        wire.bind((interface, 0))
        print("listening", flush=True)  # noqa: T201 - read by the test
        while True:
            output.write(wire.recv(MAX_PACKET_BYTES))


if __name__ == "__main__":
    main()
