"""Every socket of every process under a hundred thousand damaged messages."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest
import zmq

from common.codec import decode, encode
from common.config import Settings
from common.errors import BadMessage
from common.jsonl import last_record
from common.messages import MAX_HEADER_BYTES, Identify, Welcome
from common.networks import build_network
from common.state_dicts import plain_state_dict
from common.weights import WeightHeader, encode_weights, weight_contract
from tests.faults.fuzz_roles import examples_of, hello, join, telemetry_of
from tests.faults.mutations import Mutator
from tests.process_system import ProcessSystem, free_endpoints
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

MESSAGES: Final = int(os.environ.get("WARPZONE_FUZZ_MESSAGES", "100000"))
MAX_GROWTH_MB: Final = 64
"""libzmq queues subscriptions without a bound until they are read; the rest is far below."""
DEADLINE_S: Final = 120.0
ROLE_SHARES: Final = {"controller": 0.4, "actor": 0.3, "learner": 0.3}
IDENTIFY: Final = Identify.tag.encode()
MOST: Final = 0.85
"""Some damage is none: a value within its bounds, old ids."""
REASONS: Final = {
    *("frame_count", "msgpack", "header_fields", "unknown_message", "protocol"),
    *("array_count", "array_row", "array_dtype", "array_shape", "array_size", "checksum"),
    *("field_names", "field_type", "field_range", "field_text", "role", "incarnation"),
    *("block_steps", "block_shape", "block_action", "block_flags", "block_reward"),
    *("block_priority", "block_frame_index", "priority_shape", "priority_dtype"),
    *("shared_file", "batch_size"),
}
"""Of decoding, of roles, and of every handler that looks at values."""


@pytest.fixture
def system(tmp_path: Path) -> Iterator[ProcessSystem]:
    settings = corridor_settings(tmp_path, {"endpoints": free_endpoints(), "actor": {"actors": 1}})
    system = ProcessSystem(settings)
    yield system
    system.close()


Open = Callable[[int], zmq.Socket[bytes]]


@pytest.fixture
def open_socket() -> Iterator[Open]:
    context = zmq.Context()
    opened: list[zmq.Socket[bytes]] = []

    def open_one(kind: int) -> zmq.Socket[bytes]:
        opened.append(context.socket(kind))
        return opened[-1]

    yield open_one
    for socket in opened:
        socket.close(linger=0)
    context.term()


@dataclass
class Watch:
    """Memory of a process before and after."""

    process: psutil.Process
    before_mb: float

    @classmethod
    def of(cls, system: ProcessSystem, peer: str) -> Watch:
        process = psutil.Process(system.processes[peer].pid)
        return cls(process, process.memory_info().rss / 2**20)

    def growth_mb(self) -> float:
        return self.process.memory_info().rss / 2**20 - self.before_mb


def send_all(
    socket: zmq.Socket[bytes],
    draw: Callable[[], list[bytes]],
    count: int = MESSAGES,
    greeting: list[bytes] | None = None,
) -> None:
    """As fast as the other side takes them; never more than the queue holds ahead of it."""
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLOUT)
    deadline_s = time.monotonic() + DEADLINE_S
    for _ in range(count):
        frames = draw()
        while not poller.poll(1_000):
            assert time.monotonic() < deadline_s, "the other side takes nothing any more"
        socket.send_multipart(frames)
        while greeting is not None and socket.poll(0):
            if IDENTIFY in socket.recv_multipart()[0]:
                # The line was replaced: a process that gets no time misses its heartbeats.
                socket.send_multipart(greeting)


def rejects(system: ProcessSystem) -> dict[str, int]:
    """What the replay server has counted, by reason."""
    beat = system.beat("replay_server-0")
    return {
        name.removeprefix("bad_"): int(str(value))
        for name, value in beat.items()
        if name.startswith("bad_")
    }


def telemetry_rejects(system: ProcessSystem) -> int:
    metrics = last_record(system.paths.metrics) or {}
    return int(str(metrics.get("telemetry_bad_total", 0)))


def small(draw: Callable[[], list[bytes]]) -> list[bytes]:
    """One that does not end its line by its size, with all that was sent before it."""
    while max(map(len, frames := draw())) > MAX_HEADER_BYTES:
        pass
    return frames


def attack_replay(system: ProcessSystem, open_socket: Open) -> int:
    """As one of each role; the number of messages."""
    settings, sent = system.settings, 0
    for seed, (role, share) in enumerate(ROLE_SHARES.items()):
        intruder = open_socket(zmq.DEALER)
        welcome, count = join(intruder, settings, role), int(MESSAGES * share)
        own = Mutator(seed, examples_of(role, settings, welcome))
        draw = Mutator(1).message if role == "controller" else own.mixed
        send_all(intruder, draw, count, hello(settings, role))
        sent += count
    return sent


def weights_of(settings: Settings) -> bytes:
    """As the learner of this run would send them."""
    contract = weight_contract(settings)
    network = build_network("small", settings.spec, settings.learner.num_quantiles)
    header = WeightHeader(
        run_id=contract.run_id,
        generation=1,
        version=1,
        agent_steps=0,
        stage_shares={},
        network=contract.network,
        num_quantiles=contract.num_quantiles,
        spec=contract.spec,
    )
    return encode_weights(header, plain_state_dict(network))


def sends_away(frames: list[bytes]) -> bool:
    """A server of another version, or one that refuses, ends an actor: not what is tried here."""
    try:
        return decode(frames).message.tag == "refused"
    except BadMessage as error:
        return error.reason == "protocol"


@pytest.mark.fault(
    28,
    "100,000 damaged messages to each socket of replay server and learner",
    "no crash, no growth, others go on, every reject counted",
)
def test_servers_stand_damaged_messages(
    system: ProcessSystem,
    open_socket: Open,
    measured: Callable[[str], None],
) -> None:
    for package in ("replay_server", "learner", "actor"):
        system.start(package)
    # Until then libraries load and buffers fill.
    system.wait_for("learner-0", "progress", 1_500)
    watches = {peer: Watch.of(system, peer) for peer in system.processes}
    mutator, endpoints = Mutator(1, telemetry_of(system.settings)), system.settings.endpoints

    sent = attack_replay(system, open_socket)
    telemetry = open_socket(zmq.PUSH)
    telemetry.connect(endpoints.telemetry_endpoint)
    send_all(telemetry, lambda: small(mutator.mixed))
    subscriber = open_socket(zmq.XSUB)
    subscriber.connect(endpoints.weights_endpoint)
    send_all(subscriber, lambda: [mutator.subscription()])

    updates = system.number("learner-0", "progress")
    system.wait_for("learner-0", "progress", updates + 50)
    wait_until("rejects", lambda: sum(rejects(system).values()) > MOST * sent, 30)
    wait_until("telemetry rejects", lambda: telemetry_rejects(system) > MOST * MESSAGES, 30)
    growth = {peer: watch.growth_mb() for peer, watch in watches.items()}
    counted, told = rejects(system), telemetry_rejects(system)
    measured(
        f"{sum(counted.values()):,} rejects for {len(counted)} reasons and {told:,} of telemetry "
        f"counted; growth at most {max(growth.values()):.0f} MB"
    )
    assert counted.keys() >= REASONS, REASONS - counted.keys()
    # The learner's own requests may be among those for which there was no room.
    assert sum(counted.values()) - counted.get("too_many_requests", 0) <= sent
    assert told <= MESSAGES
    assert max(growth.values()) < MAX_GROWTH_MB, growth


@pytest.mark.fault(
    29,
    "100,000 damaged answers and weights to an actor",
    "no crash, no growth, it plays as soon as real weights come",
)
def test_an_actor_stands_a_broken_server(
    system: ProcessSystem,
    open_socket: Open,
    measured: Callable[[str], None],
) -> None:
    endpoints = system.settings.endpoints
    router, weights = open_socket(zmq.ROUTER), open_socket(zmq.XPUB)
    router.bind(endpoints.replay_endpoint)
    weights.bind(endpoints.weights_endpoint)
    system.start("actor")
    assert router.poll(40_000)
    routing = router.recv_multipart()[0]
    welcome = [bytes(f) for f in encode(Welcome(server_incarnation=1, window=4), {})]
    router.send_multipart([routing, *welcome])
    watch, mutator = Watch.of(system, "actor-0"), Mutator(seed=2)
    frame = weights_of(system.settings)

    for number in range(MESSAGES):
        weights.send(mutator.weights(frame))
        frames = mutator.message()
        if not sends_away(frames):
            router.send_multipart([routing, *frames])
        if number % 500 == 0:
            time.sleep(0.01)
            while router.poll(0):
                router.recv_multipart()
    wait_until("bad weights are counted", lambda: system.number("actor-0", "weights_bad") > 0, 20)

    assert system.processes["actor-0"].poll() is None
    growth_mb = watch.growth_mb()
    bad = system.number("actor-0", "weights_bad")
    measured(f"{bad:,.0f} bad weights counted; growth {growth_mb:.0f} MB")
    assert growth_mb < MAX_GROWTH_MB
