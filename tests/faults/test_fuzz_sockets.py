"""Every socket of every process under damaged messages: a hundred thousand in `make faults`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
import zmq

from common.jsonl import last_record
from common.messages import MAX_HEADER_BYTES, Identify, Stats
from launch.control import ask
from tests.faults.fuzz_roles import (
    batch_for,
    examples_of,
    hello,
    join,
    telemetry_of,
    weights_of,
    whole,
    wishes_of,
)
from tests.faults.hostile_server import HostileServer
from tests.faults.memory_watch import Watch
from tests.faults.mutations import Mutator
from tests.process_system import ProcessSystem, free_endpoints
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

MESSAGES: Final = int(os.environ.get("WARPZONE_FUZZ_MESSAGES", "20000"))
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
BATCH_REASONS: Final = ("shape", "dtype", "action", "returns", "discounts", "weights")
BAD_BATCHES: Final = 300
"""A learner that got a bad one waits a moment before it asks again."""
LOST_WITH_A_LINE: Final = 3_000
"""More than the queues of both sides hold: a process that gets no time misses its heartbeats."""


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


def control_rejects(system: ProcessSystem) -> float:
    return system.number("learner-0", "control_bad")


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


@pytest.mark.fault(
    28,
    f"{MESSAGES:,} damaged messages to each socket of replay server and learner",
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
    wishes = Mutator(5, wishes_of(system.settings))
    desk = open_socket(zmq.DEALER)
    desk.connect(endpoints.control_endpoint)
    send_all(desk, lambda: small(wishes.mixed))
    subscriber = open_socket(zmq.XSUB)
    subscriber.connect(endpoints.weights_endpoint)
    send_all(subscriber, lambda: [mutator.subscription()])

    updates = system.number("learner-0", "progress")
    system.wait_for("learner-0", "progress", updates + 50)
    wait_until("rejects", lambda: sum(rejects(system).values()) > MOST * sent, 30)
    wait_until("control rejects", lambda: control_rejects(system) > MOST * MESSAGES, 30)
    wait_until("telemetry rejects", lambda: telemetry_rejects(system) > MOST * MESSAGES, 30)
    growth = {peer: watch.growth_mb() for peer, watch in watches.items()}
    counted, told = rejects(system), telemetry_rejects(system)
    measured(
        f"{sum(counted.values()):,} rejects for {len(counted)} reasons, {told:,} of telemetry and "
        f"{control_rejects(system):,.0f} of controls counted; "
        f"growth at most {max(growth.values()):.0f} MB"
    )
    assert counted.keys() >= REASONS, REASONS - counted.keys()
    # The learner's own requests may be among those for which there was no room.
    assert sum(counted.values()) - counted.get("too_many_requests", 0) <= sent
    assert told <= MESSAGES
    assert max(growth.values()) < MAX_GROWTH_MB, growth


def hostile_server(system: ProcessSystem, open_socket: Open, package: str) -> HostileServer:
    """With one client, which has been welcomed."""
    server = HostileServer.at(open_socket(zmq.ROUTER), system.settings.endpoints.replay_endpoint)
    system.start(package)
    server.wait_for_client(DEADLINE_S)
    return server


def wait_for_rejects(system: ProcessSystem, peer: str, server: HostileServer) -> int:
    """All that cannot be read is counted, but for what was on a line that was replaced."""
    with suppress(AssertionError):
        wait_until("all", lambda: system.number(peer, "answers_bad") >= server.undecodable, 10)
    counted = int(system.number(peer, "answers_bad"))
    assert counted >= server.undecodable - LOST_WITH_A_LINE
    return counted


@pytest.mark.fault(
    29,
    f"{MESSAGES:,} damaged answers and weights to an actor",
    "no crash, no growth, answers counted, it plays as soon as real weights come",
)
def test_an_actor_stands_a_broken_server(
    system: ProcessSystem,
    open_socket: Open,
    measured: Callable[[str], None],
) -> None:
    weights, frame = open_socket(zmq.XPUB), weights_of(system.settings)
    weights.bind(system.settings.endpoints.weights_endpoint)
    server = hostile_server(system, open_socket, "actor")
    watch, mutator = Watch.of(system, "actor-0"), Mutator(seed=2)

    for _ in range(MESSAGES // 10):
        # An actor that looks up finds the newest frame only, whatever is sent: so fewer of them.
        weights.send(mutator.weights(frame))
        server.flood(mutator.message, 10)
    counted = wait_for_rejects(system, "actor-0", server)
    bad_weights, played = (system.number("actor-0", n) for n in ("weights_bad", "progress"))
    growth_mb, began_s = watch.growth_mb(), time.monotonic()
    weights.send(frame)
    while not (is_playing := system.number("actor-0", "progress") > 0):
        assert time.monotonic() < began_s + DEADLINE_S, "real weights came, nobody plays"
        server.listen(100)

    measured(
        f"{counted:,} of {server.undecodable:,} bad answers and {bad_weights:,.0f} bad weights "
        f"counted; growth {growth_mb:.0f} MB; plays after {time.monotonic() - began_s:.1f} s"
    )
    assert played == 0
    assert is_playing
    assert counted <= server.undecodable
    assert bad_weights > MESSAGES / 1_000
    assert growth_mb < MAX_GROWTH_MB


@pytest.mark.fault(
    29,
    f"{MESSAGES:,} damaged answers to the learner, batches among them",
    "no crash, no growth, answers counted, it learns as soon as real batches come",
)
def test_a_learner_stands_a_broken_server(
    system: ProcessSystem,
    open_socket: Open,
    measured: Callable[[str], None],
) -> None:
    server, settings = hostile_server(system, open_socket, "learner"), system.settings
    mutator = Mutator(seed=3)

    damaged = 0
    while damaged < BAD_BATCHES:
        assert system.processes["learner-0"].poll() is None, "a bad batch ended it"
        damaged += server.answer(lambda asked: mutator.array_damaged(*batch_for(asked, settings)))
    watch = Watch.of(system, "learner-0")
    server.flood(mutator.message, MESSAGES - damaged)
    counted = wait_for_rejects(system, "learner-0", server)
    updates, began_s = system.number("learner-0", "progress"), time.monotonic()
    while system.number("learner-0", "progress") < updates + 20:
        assert time.monotonic() < began_s + DEADLINE_S, "real batches came, nobody learns"
        server.answer(lambda asked: whole(*batch_for(asked, settings)))

    beat = system.beat("learner-0")
    measured(
        f"{counted:,} bad answers counted, {server.undecodable:,} of them no messages; growth "
        f"{watch.growth_mb():.0f} MB; 20 updates after {time.monotonic() - began_s:.1f} s"
    )
    assert counted <= server.sent + damaged
    assert {f"bad_batch_{name}" for name in BATCH_REASONS} <= beat.keys()
    assert watch.growth_mb() < MAX_GROWTH_MB


def test_a_controller_finds_its_answer_among_damaged_ones(
    system: ProcessSystem, open_socket: Open
) -> None:
    endpoint = system.settings.endpoints.replay_endpoint
    server, mutator = HostileServer.at(open_socket(zmq.ROUTER), endpoint), Mutator(seed=4)

    with ThreadPoolExecutor() as threads:
        answer = threads.submit(ask, system.settings, endpoint, DEADLINE_S)
        server.wait_for_client(DEADLINE_S)
        server.flood(mutator.message, MESSAGES // 20)
        server.say(Stats(values={"replay_size": 5}))

        assert answer.result(DEADLINE_S) == Stats(values={"replay_size": 5})
