"""Ends of in-memory lines that a test drives by hand, and a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Mapping

from common.codec import Array, Received, decode, encode
from common.heartbeat import Identity
from common.ids import Incarnation, Role
from common.memory_transport import MemoryNetwork
from common.messages import (
    PROTOCOL_VERSION,
    Hello,
    Identify,
    Message,
    Ping,
    Status,
    Welcome,
)
from common.specs import DataSpec

REPLAY = "ipc:///replay"
RUN = "test-run"


class FakeClock:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.seconds_per_look = 0.0
        """Above 0 time passes by itself, for code that waits for a deadline."""

    def __call__(self) -> float:
        self.now_s += self.seconds_per_look
        return self.now_s

    def advance(self, seconds: float) -> None:
        self.now_s += seconds


def identity(role: Role, index: int = 0, *, incarnation: int = 1, run_id: str = RUN) -> Identity:
    return Identity(run_id=run_id, role=role, index=index, incarnation=Incarnation(incarnation))


def hello(who: Identity, spec: DataSpec, *, protocol: int = PROTOCOL_VERSION) -> Hello:
    role = "controller" if who.role not in ("actor", "learner") else who.role
    return Hello(
        protocol=protocol,
        run_id=who.run_id,
        role=role,
        peer=who.peer,
        incarnation=who.incarnation,
        spec=spec,
    )


class ScriptedServer:
    """The server's end: reads what clients said, says what the test wants."""

    def __init__(self, network: MemoryNetwork, endpoint: str = REPLAY) -> None:
        self._router = network.router(endpoint)
        self.incarnation = 1
        self.heard: list[Received] = []
        self._last_routing = b""
        self._question = 0

    def read(self) -> list[Message]:
        """The messages since the last call."""
        messages = []
        while (arrival := self._router.receive(0)) is not None:
            self._last_routing, frames = arrival
            self.heard.append(decode(frames))
            messages.append(self.heard[-1].message)
            if isinstance(messages[-1], Ping):
                self._question = messages[-1].question
        return messages

    def lose(self) -> int:
        """Drop what has arrived, as a broken line would; how many messages that were."""
        return len(self.read())

    def say(self, message: Message, arrays: Mapping[str, Array] | None = None) -> None:
        """To whoever spoke last."""
        assert self._router.send(self._last_routing, encode(message, arrays))

    def say_bytes(self, frames: list[bytes]) -> None:
        assert self._router.send(self._last_routing, frames)

    def welcome(self, window: int = 4) -> None:
        self.say(Welcome(server_incarnation=self.incarnation, window=window))

    def identify(self) -> None:
        self.say(Identify(server_incarnation=self.incarnation))

    def status(self, window: int = 4, *, inserted: int = 0, gate: str = "open") -> None:
        """Answers the last question that was read, or nobody."""
        question, self._question = self._question, 0
        self.say(
            Status(
                server_incarnation=self.incarnation,
                question=question,
                window=window,
                size=inserted,
                capacity=1000,
                mass=float(inserted),
                inserted_total=inserted,
                sampled_total=0,
                samples_per_insert=4.0,
                credit=0.0,
                gate=gate,  # type: ignore[arg-type] # tests pass one of the three
            )
        )


class ScriptedClient:
    """A client's end of a line to the replay server."""

    def __init__(
        self, network: MemoryNetwork, who: Identity, spec: DataSpec, endpoint: str = REPLAY
    ) -> None:
        self.identity = who
        self.spec = spec
        self._dealer = network.dealer(endpoint, f"{who.peer}.{who.incarnation}")

    def say(self, message: Message, arrays: Mapping[str, Array] | None = None) -> None:
        assert self._dealer.send(encode(message, arrays))

    def say_bytes(self, frames: list[bytes]) -> None:
        assert self._dealer.send(frames)

    def say_hello(self) -> None:
        self.say(hello(self.identity, self.spec))

    def read(self) -> list[Message]:
        return [received.message for received in self.read_received()]

    def read_received(self) -> list[Received]:
        received = []
        while (frames := self._dealer.receive(0)) is not None:
            received.append(decode(frames))
        return received
