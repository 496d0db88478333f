"""The seam between the programs and the network: what a process may ask of its sockets.

`common/transport.py` implements it with ZeroMQ, `common/memory_transport.py` in one process. All
calls are made by one thread at a time; every wait is bounded by its timeout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from common.codec import Buffer

Frames = Sequence[Buffer]


class Dealer(Protocol):
    """A client's line to one server. Messages stay in order while the connection lives."""

    def send(self, frames: Frames) -> bool:
        """False when the outgoing queue is full; nothing was sent then."""
        ...

    def receive(self, timeout_ms: int) -> Frames | None: ...

    def close(self) -> None: ...


class Router(Protocol):
    """A server's lines to all its clients, each known by its routing id."""

    def receive(self, timeout_ms: int) -> tuple[bytes, Frames] | None: ...

    def send(self, peer: bytes, frames: Frames) -> bool:
        """False when the peer is gone or does not read."""
        ...

    def close(self) -> None: ...


class Publisher(Protocol):
    """Keeps the last value: whoever subscribes later is sent it at the next `pump`."""

    @property
    def odd_events(self) -> int:
        """What subscribers said that nobody of ours says."""
        ...

    def publish(self, frame: Buffer) -> None: ...

    def pump(self) -> int:
        """Answer new subscribers; returns how many there were."""
        ...

    def close(self) -> None: ...


class Subscriber(Protocol):
    """Sees the newest value only."""

    def newest(self, timeout_ms: int) -> Buffer | None:
        """The newest value that has not been returned yet."""
        ...

    def close(self) -> None: ...


class Pusher(Protocol):
    """One-way messages that may be lost; losses are counted by the caller."""

    def send(self, frames: Frames) -> bool: ...

    def close(self) -> None: ...


class Puller(Protocol):
    """The receiving end of many pushers."""

    def receive(self, timeout_ms: int) -> Frames | None: ...

    def close(self) -> None: ...


class Network(Protocol):
    """Makes the ends of all lines; closing it closes them."""

    def dealer(self, endpoint: str, identity: str) -> Dealer: ...

    def router(self, endpoint: str) -> Router: ...

    def publisher(self, endpoint: str) -> Publisher: ...

    def subscriber(self, endpoint: str) -> Subscriber: ...

    def pusher(self, endpoint: str) -> Pusher: ...

    def puller(self, endpoint: str) -> Puller: ...

    def close(self) -> None: ...
