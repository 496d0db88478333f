"""A replay server that is broken or hostile, for one client that asks it for something."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import zmq

from common.codec import Array, decode, encode
from common.errors import BadMessage
from common.messages import Hello, Message, Ping, SampleRequest, Status, Welcome

PAUSE_EVERY = 50
SEND_TIMEOUT_MS = 10_000
NO_TRUTH_IN = ("refused", "status", "stats", "batch", "batch_inline")
"""Whole ones are believed: they send a client away, end the run or answer its question."""
Draw = Callable[[], list[bytes]]


@dataclass
class HostileServer:
    """Sends nothing into the void: at the high-water mark it waits until the client has read."""

    router: zmq.Socket[bytes]
    sent: int = 0
    """Damaged ones that the line took."""
    undecodable: int = 0
    """Those of them that no client may read as a message."""
    heard: list[Message] = field(default_factory=list)
    _routing: bytes = b""

    @classmethod
    def at(cls, router: zmq.Socket[bytes], endpoint: str) -> HostileServer:
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        router.setsockopt(zmq.SNDTIMEO, SEND_TIMEOUT_MS)
        router.bind(endpoint)
        return cls(router)

    def wait_for_client(self, deadline_s: float) -> None:
        end_s = time.monotonic() + deadline_s
        while not any(isinstance(message, Hello) for message in self.heard):
            assert time.monotonic() < end_s, "nobody said hello"
            self.listen(100)

    def say(self, message: Message, arrays: Mapping[str, Array] | None = None) -> None:
        self._send([bytes(frame) for frame in encode(message, arrays)])

    def listen(self, timeout_ms: int = 0) -> None:
        """Keep what has come; a hello is welcomed and a ping is answered."""
        while self.router.poll(timeout_ms):
            timeout_ms = 0
            self._routing, *frames = self.router.recv_multipart()
            message = decode(frames).message
            self.heard.append(message)
            if isinstance(message, Hello):
                self.say(Welcome(server_incarnation=1, window=4))
            elif isinstance(message, Ping):
                self.say(open_status(message.question))

    def flood(self, draw: Draw, count: int) -> None:
        """Damaged messages, but none that a client is right to believe."""
        for number in range(count):
            while (is_bad := is_undecodable(frames := draw())) is None:
                pass
            if self._send(frames):
                self.sent += 1
                self.undecodable += is_bad
            if number % PAUSE_EVERY == 0:
                self.listen()

    def answer(self, make: Callable[[SampleRequest], list[bytes]]) -> int:
        """What is made of each request for a batch; the number of them."""
        self.listen(10)
        asked = [message for message in self.heard if isinstance(message, SampleRequest)]
        self.heard.clear()
        return sum(self._send(make(request)) for request in asked)

    def _send(self, frames: list[bytes]) -> bool:
        # A line that is being replaced, because its process got no time, has no route.
        with suppress(zmq.ZMQError):
            self.router.send_multipart([self._routing, *frames])
            return True
        time.sleep(0.1)
        return False


def is_undecodable(frames: list[bytes]) -> bool | None:
    """None for what a client must obey: another version ends it, whole answers are believed."""
    try:
        return None if decode(frames).message.tag in NO_TRUTH_IN else False
    except BadMessage as error:
        return None if error.reason == "protocol" else True


def open_status(question: int) -> Status:
    return Status(
        server_incarnation=1,
        question=question,
        window=4,
        size=0,
        capacity=0,
        mass=0.0,
        inserted_total=0,
        sampled_total=0,
        samples_per_insert=1.0,
        credit=0.0,
        gate="open",
    )
