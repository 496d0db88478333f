"""What only measurements need of ZeroMQ; no program of a run uses it.

Plain sockets, without our bounds and checks, are what raw throughput is measured with; a crowd is
the lines of many actors in one process.
"""

from __future__ import annotations

import zmq

from common.channels import Frames
from common.transport_channels import ZmqDealer

WAIT_MS = 50


class Crowd:
    """Many lines of one process, by the order in which they were added."""

    def __init__(self) -> None:
        self._poller = zmq.Poller()
        self._places: dict[zmq.Socket[bytes], int] = {}

    def add(self, dealer: ZmqDealer) -> None:
        self._places[dealer.join(self._poller)] = len(self._places)

    def ready(self, timeout_ms: int) -> list[int]:
        """The places of the lines that have something to read, after a wait for the first."""
        return [self._places[socket] for socket, _ in self._poller.poll(timeout_ms)]


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
