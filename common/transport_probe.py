"""Plain ZeroMQ sockets, without our bounds and checks: what raw throughput is measured with.

No program uses them; `launch/benchmarks` compares our lines with them.
"""

from __future__ import annotations

import zmq

from common.channels import Frames

WAIT_MS = 50


class PlainPusher:
    """Sends as fast as the other side reads."""

    def __init__(self, endpoint: str) -> None:
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.PUSH)
        self._socket.setsockopt(zmq.SNDHWM, 4)
        self._socket.connect(endpoint)

    def send(self, frames: Frames) -> bool:
        """False when nobody took it within a moment."""
        if not self._socket.poll(WAIT_MS, zmq.POLLOUT):
            return False
        self._socket.send_multipart(frames, copy=False)
        return True

    def close(self) -> None:
        self._context.destroy(linger=0)


class PlainPuller:
    """Receives and forgets."""

    def __init__(self, endpoint: str) -> None:
        self._context = zmq.Context()
        self._socket: zmq.Socket[bytes] = self._context.socket(zmq.PULL)
        self._socket.setsockopt(zmq.RCVHWM, 4)
        self._socket.bind(endpoint)

    def receive(self) -> bool:
        """Whether a message came within a moment."""
        if not self._socket.poll(WAIT_MS):
            return False
        self._socket.recv_multipart(copy=False)
        return True

    def close(self) -> None:
        self._context.destroy(linger=0)
