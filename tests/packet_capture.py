"""Writes packets to a file: `python -m tests.packet_capture INTERFACE LOW_PORT HIGH_PORT FILE`.

Those of TCP over IPv4 to or from such a port. Prints a line when it listens; ends when it is told
to, or when it has seen enough.
"""

from __future__ import annotations

import signal
import socket
import struct
import sys
from pathlib import Path

ALL_PROTOCOLS = 0x0003
MAX_PACKET_BYTES = 256 * 1024
MAX_FILE_BYTES = 32 * 1024 * 1024
PORTS = struct.Struct("!34x2H")
"""After 14 bytes of Ethernet and 20 of IPv4: from and to."""


def main() -> None:
    interface, low, high, file = sys.argv[1], *map(int, sys.argv[2:4]), Path(sys.argv[4])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with (
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as wire,
        file.open("wb", buffering=0) as output,
    ):
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        wire.bind((interface, 0))
        print("listening", flush=True)  # noqa: T201 - read by the test
        while output.tell() < MAX_FILE_BYTES:
            packet = wire.recv(MAX_PACKET_BYTES)
            has_ports = len(packet) >= PORTS.size
            if has_ports and any(low <= port <= high for port in PORTS.unpack_from(packet)):
                output.write(packet)


if __name__ == "__main__":
    main()
