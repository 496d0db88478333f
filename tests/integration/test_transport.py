"""ZeroMQ behind the channels: what only a real network can do wrong."""

from __future__ import annotations

import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar

import pytest
import zmq

from common import transport
from common.channels import Network
from common.errors import ConfigError, EndpointTaken
from common.lifecycle import RESTARTED_VARIABLE
from common.transport import SocketOptions, ZmqNetwork
from common.transport_channels import ZmqPublisher
from launch.restart import RestartPolicy, may_restart
from tests.bad_cable import SLOW_BYTES_PER_S, BadCable
from tests.kept_network import kept
from tests.waiting import answers, eventually

pytestmark = pytest.mark.integration

Bound = TypeVar("Bound")
DEADLINE_S = 5.0
QUICK = SocketOptions(reconnect_ms=10, reconnect_max_ms=50)
LONG_MESSAGE_S = 6
"""Longer than a silent line is kept."""


@pytest.fixture
def network() -> Iterator[Network]:
    made = kept(ZmqNetwork(QUICK))
    yield made
    made.close()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="wz"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
        return number


def bound_again(bind: Callable[[str], Bound], endpoint: str) -> Bound:
    """Sockets close in the background, so the port may be free a moment later."""
    end_s = time.monotonic() + DEADLINE_S
    while True:
        try:
            return bind(endpoint)
        except ConfigError:
            assert time.monotonic() < end_s, "the port is still taken"
            time.sleep(0.01)


@pytest.mark.parametrize("kind", ["router", "publisher", "puller"])
def test_a_taken_port_is_refused_by_name(network: Network, port: int, kind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()

        with pytest.raises(
            ConfigError, match=rf"cannot bind tcp://127\.0\.0\.1:{port}.*in use.*another run"
        ):
            getattr(network, kind)(f"tcp://127.0.0.1:{port}")


@pytest.mark.parametrize("kind", ["router", "publisher", "puller"])
def test_a_port_that_a_process_had_before_may_be_free_again(
    network: Network, port: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RESTARTED_VARIABLE, "1")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()

        with pytest.raises(EndpointTaken, match=rf"cannot bind .*:{port}.*in use") as refusal:
            getattr(network, kind)(f"tcp://127.0.0.1:{port}")

    assert may_restart(refusal.value.exit_code, 0, RestartPolicy())
    with pytest.raises(ConfigError, match="make its folder first"):
        getattr(network, kind)("ipc:///nowhere/at-all")


class Revoking:
    """A guard that has just revoked a key."""

    revocations = 0

    def is_allowed(self, key: bytes) -> bool:
        return bool(key)


def test_weights_wait_for_their_address_in_a_later_life_too() -> None:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    guard, tries = Revoking(), iter([False, True, False])

    def open_socket() -> zmq.Socket[bytes]:
        if next(tries):
            raise EndpointTaken("cannot bind: in use")
        return context.socket(zmq.XPUB)

    publisher = ZmqPublisher(open_socket, guard, may_reopen=True)
    guard.revocations = 1

    assert [publisher.pump(), publisher.pump()] == [0, 0]
    assert list(tries) == []
    publisher.close()
    context.term()


@pytest.mark.parametrize("kind", ["router", "publisher", "puller"])
@pytest.mark.parametrize("host", ["*", "0.0.0.0", "192.0.2.1", "[::]"])  # noqa: S104 - refused
def test_anything_but_loopback_is_refused(
    network: Network, port: int, kind: str, host: str
) -> None:
    with pytest.raises(ConfigError, match="not loopback"):
        getattr(network, kind)(f"tcp://{host}:{port}")

    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_folder_that_is_not_there_is_refused_by_name(
    network: Network, short_folder: Path
) -> None:
    with pytest.raises(ConfigError, match=r"none/replay.*make its folder first") as told:
        network.router(f"ipc://{short_folder}/none/replay")
    assert "another run" not in str(told.value)


@pytest.mark.parametrize("kind", ["subscriber", "pusher"])
def test_nothing_is_sent_beyond_this_machine_without_keys(network: Network, kind: str) -> None:
    with pytest.raises(ConfigError, match=r"not loopback.*--keys-dir"):
        getattr(network, kind)("tcp://192.0.2.1:5601")


def test_ipv6_loopback_works(network: Network, port: int) -> None:
    try:
        router = network.router(f"tcp://[::1]:{port}")
    except ConfigError as error:
        pytest.skip(f"no IPv6 loopback on this host: {error}")
    dealer = network.dealer(f"tcp://[::1]:{port}", "a-1.1")

    eventually(lambda: answers(router, dealer))


def test_a_closed_port_can_be_bound_again(network: Network, port: int) -> None:
    for _ in range(3):
        bound_again(network.router, f"tcp://127.0.0.1:{port}").close()


def test_a_client_finds_a_restarted_server(network: Network, port: int) -> None:
    endpoint = f"tcp://127.0.0.1:{port}"
    first = network.router(endpoint)
    dealer = network.dealer(endpoint, "a-1.1")
    eventually(lambda: answers(first, dealer))

    first.close()
    second = bound_again(network.router, endpoint)

    eventually(lambda: answers(second, dealer))


def test_a_subscriber_finds_a_restarted_publisher(network: Network, port: int) -> None:
    endpoint = f"tcp://127.0.0.1:{port}"
    first = network.publisher(endpoint)
    subscriber = network.subscriber(endpoint)
    eventually(lambda: first.pump() > 0)

    first.close()
    second = bound_again(network.publisher, endpoint)
    second.publish(b"new life")

    def receives() -> bool:
        # A lost line is noticed and mended inside the calls of both sides.
        second.pump()
        frame = subscriber.newest(10)
        return frame is not None and bytes(frame) == b"new life"

    eventually(receives)


def test_the_newest_client_takes_over_an_identity(network: Network, short_folder: Path) -> None:
    endpoint = f"ipc://{short_folder}/replay"
    router = network.router(endpoint)
    old = network.dealer(endpoint, "a-1.1")
    eventually(lambda: answers(router, old))

    new = network.dealer(endpoint, "a-1.1")

    eventually(lambda: answers(router, new))


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\xff" * 100_000,
        b"\xff\0\0\0\0\0\0\0\x01\x7f",
        b"",
    ],
    ids=["http", "tls", "noise", "half a greeting", "silence"],
)
def test_garbage_on_the_port_disturbs_nobody(network: Network, port: int, garbage: bytes) -> None:
    endpoint = f"tcp://127.0.0.1:{port}"
    router, dealer = network.router(endpoint), network.dealer(endpoint, "a-1.1")

    with socket.create_connection(("127.0.0.1", port), timeout=1) as stranger:
        stranger.sendall(garbage)
        eventually(lambda: answers(router, dealer))

    assert router.receive(50) is None


def test_many_silent_connections_disturb_nobody(network: Network, port: int) -> None:
    endpoint = f"tcp://127.0.0.1:{port}"
    router = network.router(endpoint)

    with ExitStack() as strangers:
        for _ in range(80):
            address = ("127.0.0.1", port)
            strangers.enter_context(socket.create_connection(address, timeout=DEADLINE_S))
        dealer = network.dealer(endpoint, "a-1.1")
        eventually(lambda: answers(router, dealer))


def test_a_message_over_the_limit_ends_its_connection_only(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "MAX_FRAME_BYTES", 10_000)
    network = kept(ZmqNetwork(QUICK))
    endpoint = f"tcp://127.0.0.1:{port}"
    router, dealer = network.router(endpoint), network.dealer(endpoint, "a-1.1")
    big = network.dealer(endpoint, "a-2.1")
    eventually(lambda: answers(router, dealer))

    assert big.send([bytes(10_001)])
    time.sleep(0.1)
    assert router.receive(50) is None
    assert big.send([bytes(10_000)])

    arrival = router.receive(2_000)
    assert arrival is not None
    assert len(arrival[1][0]) == 10_000
    eventually(lambda: answers(router, dealer))
    network.close()


@pytest.mark.parametrize(("size", "arrives"), [(65_536, True), (65_700, False)])
def test_telemetry_is_limited_to_the_size_of_a_header(
    network: Network, port: int, size: int, arrives: bool
) -> None:
    endpoint = f"tcp://127.0.0.1:{port}"
    puller, pusher = network.puller(endpoint), network.pusher(endpoint)

    pusher.send([bytes(size)])

    assert (puller.receive(5_000 if arrives else 500) is not None) == arrives
    pusher.send([b"beat"])
    eventually(lambda: puller.receive(100) is not None)


@pytest.mark.parametrize(("size", "is_cut_off"), [(500, False), (1_000, True)])
def test_who_subscribes_cannot_fill_the_memory_of_the_publisher(
    network: Network, port: int, size: int, is_cut_off: bool
) -> None:
    publisher = network.publisher(f"tcp://127.0.0.1:{port}")
    with zmq.Context() as context, context.socket(zmq.SUB) as wordy:
        events = wordy.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        wordy.setsockopt(zmq.SUBSCRIBE, b"x" * size)
        wordy.connect(f"tcp://127.0.0.1:{port}")

        assert bool(events.poll(5_000 if is_cut_off else 500)) == is_cut_off
        assert publisher.pump() == 0
        wordy.disable_monitor()
        events.close(linger=0)
        wordy.close(linger=0)


def test_a_message_that_takes_long_comes_over_the_line_that_it_began_on(
    network: Network, port: int
) -> None:
    cable = BadCable(port)
    router = network.router(f"tcp://127.0.0.1:{port}")
    dealer = network.dealer(f"tcp://127.0.0.1:{cable.port}", "a-1.1")
    eventually(lambda: answers(router, dealer))

    cable.fault = "slow"
    dealer.send([bytes(LONG_MESSAGE_S * SLOW_BYTES_PER_S)])
    arrival = router.receive(3 * LONG_MESSAGE_S * 1_000)
    cable.close()

    assert arrival is not None
    assert len(arrival[1][0]) == LONG_MESSAGE_S * SLOW_BYTES_PER_S
    assert cable.connections == 1


def test_a_server_of_another_kind_is_survived(network: Network, port: int) -> None:
    endpoint = f"tcp://127.0.0.1:{port}"
    with zmq.Context() as context, context.socket(zmq.PULL) as foreign:
        foreign.bind(endpoint)
        dealer = network.dealer(endpoint, "a-1.1")
        dealer.send([b"hello"])

        assert dealer.receive(100) is None
        foreign.close(linger=0)


def test_an_old_libzmq_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zmq, "zmq_version_info", lambda: (4, 3, 4))

    with pytest.raises(ConfigError, match=r"libzmq .*4\.3\.5"):
        ZmqNetwork()
