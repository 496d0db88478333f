"""Sockets with keys: who gets in, who does not, and what is said about it."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import accumulate, count
from pathlib import Path

import pytest

from common import transport_guard
from common.channels import Dealer, Frames, Network, Pusher, Subscriber
from common.errors import ConfigError
from common.transport import SocketOptions, ZmqNetwork
from tests.kept_network import kept
from tests.key_factory import add_actor, foreign_keys, make_server_keys, revoke
from tests.waiting import answers, eventually

pytestmark = pytest.mark.integration

DEADLINE_S = 10.0
SILENCE_MS = 700
QUICK = SocketOptions(reconnect_ms=20, reconnect_max_ms=50, handshake_timeout_ms=1_000)


class Scene:
    """A server on loopback with keys, and networks of whoever wants to talk to it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self.keys_dir = make_server_keys(folder / "keys")
        self.server = self.network(self.keys_dir)
        self.endpoint = f"tcp://127.0.0.1:{free_port()}"

    def network(self, keys_dir: str, options: SocketOptions = QUICK) -> Network:
        network = kept(ZmqNetwork(options, keys_dir=keys_dir))
        self._stack.callback(network.close)
        return network

    def actor(self, name: str) -> Network:
        return self.network(add_actor(self.keys_dir, name))

    def stranger(self) -> Network:
        return self.network(foreign_keys(self.folder / "foreign", self.keys_dir))

    def plain(self) -> Network:
        return self.network("")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(tmp_path, stack)


def client_of(network: Network, kind: str, endpoint: str, name: str) -> Dealer | Pusher:
    return network.dealer(endpoint, name) if kind == "router" else network.pusher(endpoint)


def refusals(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Address and reason of each line about a refused connection."""
    return [
        (vars(record)["address"], vars(record)["reason"])
        for record in caplog.records
        if record.message == "connection refused"
    ]


def test_an_allowed_actor_gets_through_on_every_line(scene: Scene) -> None:
    actor, ends = scene.actor("gpu-2"), [f"tcp://127.0.0.1:{free_port()}" for _ in range(3)]
    router, dealer = scene.server.router(ends[0]), actor.dealer(ends[0], "a-1.1")
    publisher, subscriber = scene.server.publisher(ends[1]), actor.subscriber(ends[1])
    puller, pusher = scene.server.puller(ends[2]), actor.pusher(ends[2])

    publisher.publish(bytes(1_000_000))
    pusher.send([b"beat"])

    eventually(lambda: answers(router, dealer))
    eventually(lambda: publisher.pump() >= 0 and subscriber.newest(10) is not None)
    eventually(lambda: puller.receive(10) is not None)


def test_the_servers_talk_to_each_other_with_the_keys_of_their_machine(scene: Scene) -> None:
    router = scene.server.router(scene.endpoint)

    learner = scene.server.dealer(scene.endpoint, "l-0.1")
    eventually(lambda: answers(router, learner))


OTHERS = pytest.mark.parametrize(
    ("who", "reason"),
    [("stranger", "unknown key"), ("plain", "no key for this server, or no handshake in time")],
)


@OTHERS
@pytest.mark.parametrize("kind", ["router", "puller"])
def test_others_are_not_heard_and_told_of_once(
    scene: Scene, caplog: pytest.LogCaptureFixture, who: str, reason: str, kind: str
) -> None:
    server = getattr(scene.server, kind)(scene.endpoint)

    client_of(getattr(scene, who)(), kind, scene.endpoint, "a-1.1").send([b"let me in"])

    assert server.receive(SILENCE_MS) is None
    eventually(lambda: bool(refusals(caplog)))
    assert refusals(caplog) == [("127.0.0.1", reason)]


@OTHERS
def test_others_get_no_weights(
    scene: Scene, caplog: pytest.LogCaptureFixture, who: str, reason: str
) -> None:
    publisher = scene.server.publisher(scene.endpoint)
    publisher.publish(b"weights")
    stranger: Network = getattr(scene, who)()

    subscriber = stranger.subscriber(scene.endpoint)

    eventually(lambda: bool(refusals(caplog)))
    assert refusals(caplog) == [("127.0.0.1", reason)]
    assert publisher.pump() == 0
    with suppress(ConfigError):
        assert subscriber.newest(SILENCE_MS) is None


def test_a_revoked_key_does_not_get_in(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    folder = Path(add_actor(scene.keys_dir, "gpu-2"))
    kept_copy = scene.folder / "copy"
    kept_copy.mkdir(mode=0o700)
    for file in folder.iterdir():
        (kept_copy / file.name).write_bytes(file.read_bytes())
        (kept_copy / file.name).chmod(0o600)
    router = scene.server.router(scene.endpoint)

    revoke(scene.keys_dir, "gpu-2")
    scene.network(str(kept_copy)).dealer(scene.endpoint, "a-1.1").send([b"let me in"])

    assert router.receive(SILENCE_MS) is None
    assert refusals(caplog) == [("127.0.0.1", "revoked key of gpu-2")]


def test_an_actor_that_is_added_later_needs_no_restart(scene: Scene) -> None:
    router = scene.server.router(scene.endpoint)
    first = scene.actor("gpu-1").dealer(scene.endpoint, "a-1.1")
    eventually(lambda: answers(router, first))

    second = scene.actor("gpu-2").dealer(scene.endpoint, "a-2.1")
    eventually(lambda: answers(router, second))


@pytest.mark.parametrize("kind", ["router", "puller"])
def test_whoever_is_revoked_while_connected_is_not_heard_any_more(
    scene: Scene, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    server = getattr(scene.server, kind)(scene.endpoint)
    lines = {
        name: client_of(scene.actor(name), kind, scene.endpoint, name)
        for name in ("gpu-1", "gpu-2")
    }

    def is_heard(name: str) -> bool:
        lines[name].send([name.encode()])
        arrival = server.receive(200)
        return arrival is not None and name.encode() in _flat(arrival)

    for name in lines:
        eventually(partial(is_heard, name))

    revoke(scene.keys_dir, "gpu-2")

    eventually(lambda: not is_heard("gpu-2"))
    assert not any(is_heard("gpu-2") for _ in range(5))
    eventually(lambda: is_heard("gpu-1"))
    dropped = [r for r in caplog.records if r.message == "message of a revoked key dropped"]
    assert [vars(record)["peer"] for record in dropped] == ["gpu-2"]


def _flat(arrival: Frames | tuple[bytes, Frames]) -> list[bytes]:
    """The frames that came, whichever way they came."""
    frames = arrival[1] if isinstance(arrival, tuple) else arrival
    return [bytes(frame) for frame in frames]


def test_whoever_is_revoked_while_connected_gets_no_more_weights(scene: Scene) -> None:
    publisher = scene.server.publisher(scene.endpoint)
    stays, leaves = (scene.actor(name).subscriber(scene.endpoint) for name in ("gpu-1", "gpu-2"))

    def sees(subscriber: Subscriber, expected: bytes) -> bool:
        publisher.pump()
        frame = subscriber.newest(10)
        return frame is not None and bytes(frame) == expected

    pumped = (publisher.pump() for _ in count())
    newcomers = accumulate(pumped)
    eventually(lambda: next(newcomers) == 2)
    publisher.publish(b"first")
    eventually(lambda: sees(leaves, b"first"))

    revoke(scene.keys_dir, "gpu-2")
    # Whoever may stay subscribes anew.
    eventually(lambda: stays.newest(10) is None and publisher.pump() > 0)
    publisher.publish(b"second")

    eventually(lambda: sees(stays, b"second"))
    with suppress(ConfigError):
        assert not any(sees(leaves, b"second") for _ in range(30))


def test_without_its_guard_a_server_lets_nobody_in(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_guard, "ZAP_ENDPOINT", "inproc://nobody-asks-here")
    server, actor = scene.network(scene.keys_dir), scene.actor("gpu-2")
    router = server.router(scene.endpoint)
    weights_endpoint = f"tcp://127.0.0.1:{free_port()}"
    publisher = server.publisher(weights_endpoint)
    publisher.publish(b"weights")

    actor.dealer(scene.endpoint, "a-1.1").send([b"let me in"])
    subscriber = actor.subscriber(weights_endpoint)

    end_s = time.monotonic() + SILENCE_MS / 1_000
    while time.monotonic() < end_s:
        assert publisher.pump() == 0
        assert subscriber.newest(10) is None
        assert router.receive(10) is None


def test_an_actor_is_told_that_its_key_is_refused(scene: Scene) -> None:
    scene.server.router(scene.endpoint)
    dealer = scene.stranger().dealer(scene.endpoint, "a-1.1")

    with pytest.raises(ConfigError, match=r"our key is not allowed there; run .* add-actor"):
        eventually(lambda: dealer.receive(50) is not None)


def test_an_actor_is_told_that_the_server_has_no_keys(scene: Scene) -> None:
    scene.plain().router(scene.endpoint)
    dealer = scene.actor("gpu-2").dealer(scene.endpoint, "a-1.1")

    with pytest.raises(ConfigError, match="it has no keys; give it --keys-dir"):
        eventually(lambda: dealer.receive(50) is not None)


def test_an_actor_does_not_talk_to_another_server(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    impostor = scene.network(make_server_keys(scene.folder / "impostor"))
    router = impostor.router(scene.endpoint)

    scene.actor("gpu-2").dealer(scene.endpoint, "a-1.1").send([b"my steps"])

    assert router.receive(SILENCE_MS) is None
    eventually(lambda: "no answer in the handshake" in caplog.messages)


def test_connections_beyond_the_limit_are_ended(
    scene: Scene, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_guard, "MAX_CONNECTIONS", 5)
    patient = SocketOptions(reconnect_ms=20, handshake_timeout_ms=60_000)
    router = scene.network(scene.keys_dir, patient).router(scene.endpoint)
    dealer = scene.actor("gpu-2").dealer(scene.endpoint, "a-1.1")
    eventually(lambda: answers(router, dealer))
    address = ("127.0.0.1", int(scene.endpoint.rpartition(":")[2]))

    with ExitStack() as strangers:
        many = [
            strangers.enter_context(socket.create_connection(address, timeout=DEADLINE_S))
            for _ in range(20)
        ]

        # The dealer has one of the five.
        eventually(lambda: sum(is_ended(one) for one in many) == 16)
        assert answers(router, dealer)
    assert refusals(caplog)[0] == ("127.0.0.1", "more than 5 connections")


def is_ended(connection: socket.socket) -> bool:
    """Whether the other side has hung up; what it said before does not matter."""
    connection.setblocking(False)
    try:
        while connection.recv(100):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_a_folder_that_is_too_open_is_refused_before_anything_is_bound(scene: Scene) -> None:
    Path(scene.keys_dir).chmod(0o755)

    with pytest.raises(ConfigError, match="chmod 0700"):
        ZmqNetwork(QUICK, keys_dir=scene.keys_dir)


def test_a_public_key_that_is_too_open_is_refused_at_start(scene: Scene) -> None:
    (Path(scene.keys_dir) / "allowed/local.pub").chmod(0o666)

    with pytest.raises(ConfigError, match="chmod 0600"):
        ZmqNetwork(QUICK, keys_dir=scene.keys_dir)


def test_a_message_of_too_many_frames_is_cut_before_it_is_read(scene: Scene) -> None:
    router = scene.server.router(scene.endpoint)
    dealer = scene.actor("gpu-2").dealer(scene.endpoint, "a-1.1")
    dealer.send([b"x"] * 10_000)

    arrival = router.receive(int(DEADLINE_S * 1_000))

    assert arrival is not None
    assert len(arrival[1]) == 18
    eventually(lambda: answers(router, dealer))


@pytest.mark.parametrize("host", ["*", "ho!st"])
def test_an_address_that_cannot_be_reached_is_refused(scene: Scene, host: str) -> None:
    with pytest.raises(ConfigError, match="cannot connect"):
        scene.server.dealer(f"tcp://{host}:5601", "a-1.1")


@pytest.mark.timeout(20)
def test_a_guard_that_was_quicker_than_its_end_is_not_waited_for(tmp_path: Path) -> None:
    network = ZmqNetwork(QUICK, keys_dir=make_server_keys(tmp_path / "keys"))
    guard = network._guard
    assert guard is not None
    guard._stop.set()
    guard._thread.join(DEADLINE_S)

    network.close()

    assert guard._rope.closed


def test_local_sockets_need_no_keys(scene: Scene, tmp_path_factory: pytest.TempPathFactory) -> None:
    endpoint = f"ipc://{tmp_path_factory.mktemp('s')}/r"
    router, dealer = scene.server.router(endpoint), scene.plain().dealer(endpoint, "a-1.1")

    eventually(lambda: answers(router, dealer))


def test_nothing_is_lost_when_the_list_cannot_be_read_for_a_while(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    router = scene.server.router(scene.endpoint)
    dealer = scene.actor("gpu-2").dealer(scene.endpoint, "a-1.1")
    late = scene.actor("gpu-3")
    eventually(lambda: answers(router, dealer))

    allowed = Path(scene.keys_dir) / "allowed"
    allowed.chmod(0o777)
    eventually(lambda: "part of the allow-list is not used" in caplog.messages)
    newcomer = late.dealer(scene.endpoint, "a-2.1")

    assert answers(router, dealer)
    assert not answers(router, newcomer)
    allowed.chmod(0o700)
    eventually(lambda: answers(router, newcomer))


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
