"""The interfaces of `common/channels.py` inside one process: bounded queues, no threads, no waits.

For `--lockstep` and for tests. Frames are copied when they are sent, as a wire would do.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from common.channels import Frames
from common.codec import Buffer

MAX_QUEUED_MESSAGES = 1_000


def _copy(frames: Frames) -> Frames:
    return [bytes(frame) for frame in frames]


@dataclass(slots=True)
class _Hub:
    """What has been sent to one endpoint and from it."""

    inbox: deque[tuple[bytes, Frames]] = field(default_factory=deque)
    outboxes: dict[bytes, deque[Frames]] = field(default_factory=dict)
    last_value: Buffer | None = None
    subscribers: list[MemorySubscriber] = field(default_factory=list)


class MemoryDealer:
    def __init__(self, hub: _Hub, identity: bytes) -> None:
        self._hub = hub
        self._identity = identity
        self._inbox = hub.outboxes.setdefault(identity, deque())

    def send(self, frames: Frames) -> bool:
        if len(self._hub.inbox) >= MAX_QUEUED_MESSAGES:
            return False
        self._hub.inbox.append((self._identity, _copy(frames)))
        return True

    def receive(self, timeout_ms: int) -> Frames | None:
        del timeout_ms  # nothing can arrive while the only thread waits
        return self._inbox.popleft() if self._inbox else None

    def close(self) -> None:
        self._hub.outboxes.pop(self._identity, None)


class MemoryRouter:
    def __init__(self, hub: _Hub) -> None:
        self._hub = hub

    def receive(self, timeout_ms: int) -> tuple[bytes, Frames] | None:
        del timeout_ms
        return self._hub.inbox.popleft() if self._hub.inbox else None

    def send(self, peer: bytes, frames: Frames) -> bool:
        box = self._hub.outboxes.get(peer)
        if box is None or len(box) >= MAX_QUEUED_MESSAGES:
            return False
        box.append(_copy(frames))
        return True

    def close(self) -> None:
        self._hub.inbox.clear()


class MemoryPublisher:
    odd_events = 0

    def __init__(self, hub: _Hub) -> None:
        self._hub = hub

    def publish(self, frame: Buffer) -> None:
        self._hub.last_value = bytes(frame)
        for subscriber in self._hub.subscribers:
            subscriber.pending = self._hub.last_value

    def pump(self) -> int:
        return 0

    def close(self) -> None:
        self._hub.last_value = None


class MemorySubscriber:
    def __init__(self, hub: _Hub) -> None:
        self.pending: Buffer | None = hub.last_value
        self._hub = hub
        hub.subscribers.append(self)

    def newest(self, timeout_ms: int) -> Buffer | None:
        del timeout_ms
        value, self.pending = self.pending, None
        return value

    def close(self) -> None:
        self._hub.subscribers.remove(self)


class MemoryPusher:
    def __init__(self, hub: _Hub) -> None:
        self._hub = hub

    def send(self, frames: Frames) -> bool:
        if len(self._hub.inbox) >= MAX_QUEUED_MESSAGES:
            return False
        self._hub.inbox.append((b"", _copy(frames)))
        return True

    def close(self) -> None:
        """Nothing to release."""


class MemoryPuller:
    def __init__(self, hub: _Hub) -> None:
        self._hub = hub

    def receive(self, timeout_ms: int) -> Frames | None:
        del timeout_ms
        return self._hub.inbox.popleft()[1] if self._hub.inbox else None

    def close(self) -> None:
        self._hub.inbox.clear()


class MemoryNetwork:
    """Endpoints are names; both ends may be made in any order."""

    def __init__(self) -> None:
        self._hubs: dict[str, _Hub] = {}

    def dealer(self, endpoint: str, identity: str) -> MemoryDealer:
        return MemoryDealer(self._hub(endpoint), identity.encode())

    def router(self, endpoint: str) -> MemoryRouter:
        return MemoryRouter(self._hub(endpoint))

    def publisher(self, endpoint: str) -> MemoryPublisher:
        return MemoryPublisher(self._hub(endpoint))

    def subscriber(self, endpoint: str) -> MemorySubscriber:
        return MemorySubscriber(self._hub(endpoint))

    def pusher(self, endpoint: str) -> MemoryPusher:
        return MemoryPusher(self._hub(endpoint))

    def puller(self, endpoint: str) -> MemoryPuller:
        return MemoryPuller(self._hub(endpoint))

    def close(self) -> None:
        self._hubs.clear()

    def _hub(self, endpoint: str) -> _Hub:
        return self._hubs.setdefault(endpoint, _Hub())
