"""A helper process of the benchmark `swarm`: the lines of many actors, without the actors.

Every line is what an actor has: an identity, a HELLO, credits, numbered blocks, acknowledgements,
blocks that are sent again. Only the block is the same each time, and its arrays are checksummed
once, because actors do that on machines of their own.
"""

from __future__ import annotations

import heapq
import json
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import msgpack

from common.channels import Frames
from common.codec import encode, seal, unpack_header
from common.config import Settings
from common.handshake import ServerLink, routing_id
from common.heartbeat import Identity
from common.ids import Incarnation, new_incarnation
from common.messages import BlockMessage
from common.settings_files import load_settings
from common.transport import ZmqNetwork
from common.transport_probe import Crowd
from launch.benchmarks.blocks import random_block
from launch.benchmarks.scene import answer, commands

POLL_MS = 5
SWEEP_S = 0.1
"""Between two turns of the lines that nobody has written to: questions are due once a second."""


class BlockPress:
    """Prints the same block for everybody, with another name on it each time."""

    def __init__(self, settings: Settings) -> None:
        block = random_block(settings.spec, settings.actor.block_steps)
        self.num_items = block.num_items
        message = self.message(Incarnation(1), 0, 0)
        header, *self._views = encode(message, {n: getattr(block, n) for n in message.arrays})
        self._header = unpack_header(header, {"v", "t", "f", "a"})

    def message(self, incarnation: Incarnation, index: int, sequence: int) -> BlockMessage:
        return BlockMessage(
            incarnation=incarnation,
            sequence=sequence,
            env_index=index,
            weight_generation=0,
            weight_version=0,
            stage="1-1",
        )

    def frames(self, message: BlockMessage) -> Frames:
        return [seal(msgpack.packb({**self._header, "f": asdict(message)})), *self._views]


@dataclass(slots=True)
class Line:
    """One actor as the server knows it."""

    identity: Identity
    link: ServerLink
    sink: Any
    sent_s: deque[float] = field(default_factory=deque)
    """When each block that is not acknowledged yet was submitted; they are answered in order."""
    is_held: bool = False
    """A block is due and the window is used up: the actor does not play."""

    @property
    def settled(self) -> int:
        counts = self.sink.counts
        return int(counts.acked + counts.rejected)

    @property
    def outstanding(self) -> int:
        return len(self.sent_s)

    def submit(self, press: BlockPress) -> None:
        message = press.message(
            self.identity.incarnation, self.identity.index, self.sink.next_sequence
        )
        self.sent_s.append(time.monotonic())
        self.sink.submit(message, press.frames(message), press.num_items)

    def pump(self) -> list[float]:
        """Read what came; seconds from submitting to the answer, for each block."""
        before = self.settled
        self.sink.pump(0)
        now_s = time.monotonic()
        return [now_s - self.sent_s.popleft() for _ in range(self.settled - before)]


class Swarm:
    """The lines of this process, driven from one thread."""

    def __init__(self, settings: Settings, indices: Iterable[int]) -> None:
        self.network = ZmqNetwork(keys_dir=settings.endpoints.keys_dir)
        self._press = BlockPress(settings)
        self._crowd = Crowd()
        self._random = random.Random(1)  # noqa: S311 - when blocks are due, no secret
        self._swept_s = 0.0
        self._period_s = 0.0
        self._due: list[tuple[float, int]] = []
        self.latencies_s: list[float] = []
        self.lines = [self._line(settings, index) for index in indices]

    def _line(self, settings: Settings, index: int) -> Line:
        who = Identity(
            run_id=settings.run.run, role="actor", index=index, incarnation=new_incarnation()
        )
        endpoint = settings.endpoints.replay_endpoint
        dealer = self.network.dealer(endpoint, routing_id(who))
        self._crowd.add(dealer)
        link = ServerLink(dealer, endpoint, who, settings.spec)
        sink = import_module("actor.sink").BlockSink(link, settings.actor.send_window)
        return Line(who, link, sink)

    def pace(self, agent_steps_per_s: float) -> None:
        """From now on each line has a block at this rate; 0: whenever its window has room."""
        self._period_s = self._press.num_items / agent_steps_per_s if agent_steps_per_s else 0.0
        began_s, count = time.monotonic(), len(self.lines)
        self._due = [
            (began_s + (place + self._random.random()) * self._period_s / count, place)
            for place, line in enumerate(self.lines)
            if not line.is_held
        ]
        heapq.heapify(self._due)

    def run(self, seconds: float, is_done: Callable[[], bool] = lambda: False) -> None:
        """Submit what is due and read answers until the time is up or something has happened."""
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s and not is_done():
            self._submit_due()
            self._read(self._crowd.ready(POLL_MS))
            if time.monotonic() - self._swept_s >= SWEEP_S:
                self._swept_s = time.monotonic()
                self._read(range(len(self.lines)))

    def rest(self) -> None:
        """Nothing more is submitted."""
        self._due = []
        for line in self.lines:
            line.is_held = False

    def _submit_due(self) -> None:
        now_s = time.monotonic()
        while self._due and self._due[0][0] <= now_s:
            due_s, place = heapq.heappop(self._due)
            self._submit(place, due_s)

    def _submit(self, place: int, due_s: float) -> None:
        """An actor that must wait does not play on: its next block is due a period after this."""
        line = self.lines[place]
        line.is_held = not line.sink.may_submit()
        if not line.is_held:
            line.submit(self._press)
            heapq.heappush(self._due, (due_s + self._period_s, place))

    def _read(self, places: Iterable[int]) -> None:
        for place in places:
            line = self.lines[place]
            self.latencies_s += line.pump()
            if line.is_held:
                self._submit(place, time.monotonic())


def totals(swarm: Swarm) -> dict[str, int]:
    """In blocks, since the lines were made."""
    names = ("submitted", "acked", "rejected", "resent")
    sums = {name: sum(getattr(line.sink.counts, name) for line in swarm.lines) for name in names}
    return {**sums, "outstanding": sum(line.outstanding for line in swarm.lines)}


def join(swarm: Swarm, command: dict[str, Any]) -> dict[str, object]:
    """Until all are welcome."""
    swarm.run(command["seconds"], lambda: all(line.link.is_welcome for line in swarm.lines))
    return {"welcome": sum(line.link.is_welcome for line in swarm.lines)}


def play(swarm: Swarm, command: dict[str, Any]) -> dict[str, object]:
    """At a rate for a while, after a while that is not counted."""
    swarm.pace(command["agent_steps_per_s"])
    swarm.run(command["warm_s"])
    before, spent_s, began_s = totals(swarm), time.process_time(), time.monotonic()
    swarm.latencies_s = []
    swarm.run(command["seconds"])
    after, lasted_s = totals(swarm), time.monotonic() - began_s
    return {
        "acked_per_s": (after["acked"] - before["acked"]) / lasted_s,
        "cores": (time.process_time() - spent_s) / lasted_s,
        "latencies_s": swarm.latencies_s,
    }


def drain(swarm: Swarm, command: dict[str, Any]) -> dict[str, object]:
    """Until every block is answered."""
    swarm.rest()
    swarm.run(command["seconds"], lambda: not any(line.outstanding for line in swarm.lines))
    return dict(totals(swarm))


def hold(swarm: Swarm, command: dict[str, Any]) -> dict[str, object]:
    """Play on without a server until every line has a block that nobody has answered."""
    swarm.pace(command["agent_steps_per_s"])
    swarm.run(command["seconds"], lambda: all(line.outstanding for line in swarm.lines))
    return {**totals(swarm), "holding": sum(line.outstanding > 0 for line in swarm.lines)}


def come_back(swarm: Swarm, command: dict[str, Any]) -> dict[str, object]:
    """Until a new life of the server has welcomed every line; when the first and the last was.

    The clock is that of the machine, so that processes can be compared.
    """
    old, times_s = command["server_incarnation"], list[float]()

    def count() -> bool:
        back = sum(
            line.link.is_welcome and line.link.server_incarnation != old for line in swarm.lines
        )
        times_s.extend([time.monotonic()] * (back - len(times_s)))
        return len(times_s) == len(swarm.lines)

    swarm.rest()
    swarm.run(command["seconds"], count)
    return {"back": len(times_s), "first_s": times_s[:1], "last_s": times_s[-1:]}


ACTS = {"join": join, "play": play, "drain": drain, "hold": hold, "come_back": come_back}


def main() -> int:
    job = json.loads(sys.argv[1])
    swarm = Swarm(load_settings(Path(job["config"])), range(job["first"], job["end"]))
    for command in commands():
        answer(ACTS[command["act"]](swarm, command))
    swarm.network.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
