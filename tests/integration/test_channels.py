"""What `common/channels.py` promises, of ZeroMQ over ipc and tcp and of the one in memory alike."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from common.channels import Frames, Network, Publisher, Subscriber
from common.codec import Buffer
from common.memory_transport import MemoryNetwork
from common.transport import SocketOptions, ZmqNetwork
from tests.kept_network import kept
from tests.waiting import eventually

DEADLINE_S = 5.0
WAIT_MS = 2_000
SILENCE_MS = 100
FLOOD_S = 6.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Setup:
    """A network and endpoints that nobody else uses."""

    network: Network
    new_endpoint: Callable[[], str]
    is_memory: bool


@pytest.fixture
def short_folder() -> Iterator[Path]:
    # pytest's own folders are too long for the path of a local socket.
    folder = Path(tempfile.mkdtemp(prefix="wz"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(
    params=[
        "memory",
        pytest.param("ipc", marks=pytest.mark.integration),
        pytest.param("tcp", marks=pytest.mark.integration),
    ]
)
def setup(request: pytest.FixtureRequest, short_folder: Path) -> Iterator[Setup]:
    kind: str = request.param
    numbers = iter(range(100))
    makers: dict[str, Callable[[], str]] = {
        "memory": lambda: f"memory-{next(numbers)}",
        "ipc": lambda: f"ipc://{short_folder}/{next(numbers)}",
        "tcp": lambda: f"tcp://127.0.0.1:{free_port()}",
    }
    is_memory = kind == "memory"
    network: Network = MemoryNetwork() if is_memory else ZmqNetwork(SocketOptions(reconnect_ms=10))
    yield Setup(kept(network), makers[kind], is_memory)
    network.close()


def as_bytes(frames: Frames | None) -> list[bytes] | None:
    return None if frames is None else [bytes(frame) for frame in frames]


def value_of(frame: Buffer | None) -> bytes | None:
    return None if frame is None else bytes(frame)


def subscribed(publisher: Publisher, setup: Setup, endpoint: str) -> Subscriber:
    """A subscriber that the publisher has noticed."""
    subscriber = setup.network.subscriber(endpoint)
    if not setup.is_memory:
        eventually(lambda: publisher.pump() > 0)
    return subscriber


def test_a_question_reaches_the_server_and_the_answer_its_asker(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    router = setup.network.router(endpoint)
    first, second = (setup.network.dealer(endpoint, name) for name in ("a-1.1", "a-2.1"))

    assert first.send([b"one", b""])
    assert router.receive(WAIT_MS) is not None
    assert second.send([b"two", bytes(200_000)])
    arrival = router.receive(WAIT_MS)
    assert arrival is not None
    peer, frames = arrival
    assert router.send(peer, [b"answer", *frames])

    assert peer == b"a-2.1"
    assert as_bytes(second.receive(WAIT_MS)) == [b"answer", b"two", bytes(200_000)]
    assert first.receive(SILENCE_MS) is None


def test_messages_of_one_sender_stay_in_order(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    router, dealer = setup.network.router(endpoint), setup.network.dealer(endpoint, "a-1.1")

    for number in range(50):
        assert dealer.send([str(number).encode()])

    received = [router.receive(WAIT_MS) for _ in range(50)]
    numbers = [int(bytes(arrival[1][0])) for arrival in received if arrival is not None]
    assert numbers == list(range(50))


def test_what_is_sent_may_be_changed_afterwards_when_it_is_small(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    router, dealer = setup.network.router(endpoint), setup.network.dealer(endpoint, "a-1.1")
    frame = bytearray(b"before")

    dealer.send([frame])
    frame[:] = b"after!"

    arrival = router.receive(WAIT_MS)
    assert arrival is not None
    assert as_bytes(arrival[1]) == [b"before"]


def test_nothing_to_receive_is_none(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    router, dealer = setup.network.router(endpoint), setup.network.dealer(endpoint, "a-1.1")

    assert router.receive(0) is None
    assert dealer.receive(0) is None


def test_a_peer_that_never_came_cannot_be_answered(setup: Setup) -> None:
    router = setup.network.router(setup.new_endpoint())

    assert not router.send(b"nobody", [b"x"])


def test_a_peer_that_is_gone_cannot_be_answered(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    router, dealer = setup.network.router(endpoint), setup.network.dealer(endpoint, "a-1.1")
    dealer.send([b"hello"])
    assert router.receive(WAIT_MS) is not None

    dealer.close()

    eventually(lambda: not router.send(b"a-1.1", [b"x"]))


def test_a_peer_that_does_not_read_does_not_block_the_server(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    router, dealer = setup.network.router(endpoint), setup.network.dealer(endpoint, "a-1.1")
    other = setup.network.dealer(endpoint, "a-2.1")
    for name, client in (("a-1.1", dealer), ("a-2.1", other)):
        client.send([name.encode()])
        assert router.receive(WAIT_MS) is not None

    sent = 0
    while sent < 2_000 and router.send(b"a-1.1", [bytes(20_000)]):
        sent += 1

    assert sent < 2_000
    assert router.send(b"a-2.1", [b"still here"])
    assert as_bytes(other.receive(WAIT_MS)) == [b"still here"]


def test_a_dealer_without_a_server_fills_up_and_says_so(setup: Setup) -> None:
    dealer = setup.network.dealer(setup.new_endpoint(), "a-1.1")

    results = [dealer.send([b"x"]) for _ in range(1_001)]

    assert results[0]
    assert not results[-1]


def test_a_subscriber_gets_what_is_published(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    publisher = setup.network.publisher(endpoint)
    subscriber = subscribed(publisher, setup, endpoint)

    publisher.publish(b"one")

    assert value_of(subscriber.newest(WAIT_MS)) == b"one"
    assert subscriber.newest(SILENCE_MS) is None


def test_a_late_subscriber_gets_the_last_value_after_a_pump(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    publisher = setup.network.publisher(endpoint)
    publisher.publish(b"old")
    publisher.publish(b"last")

    subscriber = subscribed(publisher, setup, endpoint)

    assert value_of(subscriber.newest(WAIT_MS)) == b"last"


def test_a_slow_subscriber_sees_only_the_newest_value(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    publisher = setup.network.publisher(endpoint)
    slow = subscribed(publisher, setup, endpoint)
    for number in range(20):
        publisher.publish(number.to_bytes(1, "little") + bytes(500_000))
        time.sleep(0 if setup.is_memory else 0.005)
    last_seen = -1

    def sees_the_last() -> bool:
        nonlocal last_seen
        frame = slow.newest(0)
        if frame is not None:
            assert frame[0] > last_seen
            last_seen = frame[0]
        return last_seen == 19

    if not setup.is_memory:
        time.sleep(0.3)
        assert sees_the_last(), f"got {last_seen} of 19 first"
    eventually(sees_the_last)
    assert slow.newest(SILENCE_MS) is None


def test_every_subscriber_gets_the_value(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    publisher = setup.network.publisher(endpoint)
    subscribers = [subscribed(publisher, setup, endpoint) for _ in range(3)]

    publisher.publish(b"value")

    assert [value_of(each.newest(WAIT_MS)) for each in subscribers] == [b"value"] * 3


def test_publishing_to_nobody_and_to_the_gone_does_not_wait(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    publisher = setup.network.publisher(endpoint)
    publisher.publish(b"nobody hears it")
    subscribed(publisher, setup, endpoint).close()

    started_s = time.monotonic()
    for _ in range(10):
        publisher.publish(bytes(500_000))
        publisher.pump()

    assert time.monotonic() - started_s < 1.0


def test_telemetry_of_many_reaches_the_one(setup: Setup) -> None:
    endpoint = setup.new_endpoint()
    puller = setup.network.puller(endpoint)
    pushers = [setup.network.pusher(endpoint) for _ in range(3)]

    for number, pusher in enumerate(pushers):
        assert pusher.send([str(number).encode(), b"x"])

    received = [as_bytes(puller.receive(WAIT_MS)) for _ in pushers]
    assert sorted(frames or [] for frames in received) == [[b"0", b"x"], [b"1", b"x"], [b"2", b"x"]]
    assert puller.receive(0) is None


def test_a_pusher_without_a_receiver_fills_up_and_says_so(setup: Setup) -> None:
    pusher = setup.network.pusher(setup.new_endpoint())

    results = [pusher.send([b"x"]) for _ in range(1_001)]

    assert not results[-1]


def test_closing_leaves_nothing_hanging(setup: Setup) -> None:
    endpoint, other, third = (setup.new_endpoint() for _ in range(3))
    router, dealer = setup.network.router(endpoint), setup.network.dealer(endpoint, "a-1.1")
    publisher, subscriber = setup.network.publisher(other), setup.network.subscriber(other)
    pusher, unheard = setup.network.pusher(third), setup.network.dealer(third, "a-2.1")
    for _ in range(10):
        dealer.send([bytes(500_000)])
        publisher.publish(bytes(500_000))
        pusher.send([b"x"])
        unheard.send([b"x"])

    started_s = time.monotonic()
    for part in (router, dealer, publisher, subscriber, pusher, unheard):
        part.close()
    setup.network.close()

    assert time.monotonic() - started_s < 1.0


FLOOD = """
import random, sys, time, zmq
socket = zmq.Context().socket(zmq.XSUB)
socket.connect(sys.argv[1])
rng = random.Random(1)
for _ in range(int(sys.argv[2])):
    topic = bytes([1]) + rng.randbytes(500)
    while not socket.poll(1000, zmq.POLLOUT):
        pass
    socket.send(topic)
time.sleep(60)
"""


@pytest.mark.integration
def test_a_peer_that_asks_for_topics_without_end_does_not_fill_memory() -> None:
    endpoint, network = f"tcp://127.0.0.1:{free_port()}", ZmqNetwork()
    publisher = network.publisher(endpoint)
    publisher.publish(b"value")
    before = psutil.Process().memory_info().rss
    flood = subprocess.Popen([sys.executable, "-c", FLOOD, endpoint, "8000"])
    try:
        eventually(lambda: publisher.pump() >= 0 and publisher.odd_events > 0, 60.0)
        end_s = time.monotonic() + FLOOD_S
        while time.monotonic() < end_s:
            publisher.pump()
            time.sleep(0.01)
        grown_mb = (psutil.Process().memory_info().rss - before) / 2**20
        subscriber = network.subscriber(endpoint)
        eventually(lambda: publisher.pump() >= 0 and subscriber.newest(0) is not None, 20.0)
    finally:
        flood.kill()
        flood.wait()
        network.close()

    assert grown_mb < 48
