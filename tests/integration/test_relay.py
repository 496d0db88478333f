"""The relay between a learner and the actors of a host, over real sockets and as a process."""

from __future__ import annotations

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import zmq

from common.channels import Publisher
from common.config import ActorSettings, Settings
from common.errors import ConfigError, ExitCode
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import Incarnation
from common.jsonl import last_record
from common.run_paths import RunPaths
from launch.relay import Relay, RelayArgs, build
from tests.fake_clock import FakeClock
from tests.key_factory import add_actor, make_server_keys, revoke
from tests.processes import end, start
from tests.relay_host import Host, all_see, await_first_frame, turns_of
from tests.waiting import eventually

pytestmark = pytest.mark.integration

FRAME_BYTES = 5_000_000
SLACK_BYTES = 60_000_000
ACTORS = 5
LIFE = Incarnation(1)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def folder() -> Iterator[Path]:
    # pytest's own folders are too long for the path of a local socket.
    folder = Path(tempfile.mkdtemp(prefix="wz"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def host(folder: Path, stack: ExitStack) -> Host:
    return Host(folder, stack)


def test_the_learner_sends_a_version_once_for_all_actors_of_a_host(host: Host) -> None:
    relay, actors = host.relay(), host.actors(ACTORS)
    turn = turns_of(host, relay)

    host.publisher.publish(b"first")
    eventually(all_see(b"first", actors, turn))
    host.publisher.publish(b"second")
    eventually(all_see(b"second", actors, turn))

    assert host.subscriptions == 1


def test_a_late_actor_has_the_last_version_at_once_without_asking_the_learner(host: Host) -> None:
    relay = host.relay()
    host.publisher.publish(b"only one")
    await_first_frame(host, relay)

    late = host.actors(1)

    began_s = time.monotonic()
    eventually(all_see(b"only one", late, relay.tick))
    assert time.monotonic() - began_s < 1.0
    assert host.subscriptions == 1


def test_a_new_life_of_the_learner_passes_through(host: Host) -> None:
    relay, actors = host.relay(), host.actors(2)

    def turn(publisher: Publisher) -> None:
        publisher.pump()
        relay.tick()

    host.publisher.publish(b"generation 1")
    eventually(all_see(b"generation 1", actors, lambda: turn(host.publisher)))
    host.publisher.close()
    reborn: list[Publisher] = []
    eventually(lambda: _is_bound(host, reborn))
    reborn[0].publish(b"generation 2")

    eventually(all_see(b"generation 2", actors, lambda: turn(reborn[0])))


def _is_bound(host: Host, made: list[Publisher]) -> bool:
    """Libzmq frees an address in the background."""
    try:
        made.append(host.network().publisher(host.weights_endpoint))
    except ConfigError:
        return False
    return True


def test_with_keys_the_relay_is_one_more_peer_of_the_learner(
    folder: Path, stack: ExitStack
) -> None:
    keys_dir = make_server_keys(folder / "keys")
    host = Host(folder, stack, keys_dir)
    relay, actors = host.relay(add_actor(keys_dir, "gpu-2")), host.actors(2)
    host.publisher.publish(b"secret")

    eventually(all_see(b"secret", actors, turns_of(host, relay)))

    revoke(keys_dir, "gpu-2")
    with pytest.raises(ConfigError, match="our key is not allowed there"):
        eventually(all_see(b"never", actors, turns_of(host, relay)))


def test_newcomers_wait_while_the_learner_has_been_silent_for_too_long(host: Host) -> None:
    clock = FakeClock()
    network, who = host.network(), Identity(run_id="far", role="relay", index=0, incarnation=LIFE)
    relay = Relay(
        network.subscriber(host.weights_endpoint),
        network.publisher(host.downstream),
        HeartbeatWriter(who, None, interval_s=1_000.0),
        max_age_s=3.0,
        clock=clock,
    )
    host.publisher.publish(b"old")
    await_first_frame(host, relay)
    clock.advance(3.1)

    late = host.actors(1)
    for _ in range(10):
        relay.tick()
    too_early = late[0].newest(100)
    host.publisher.publish(b"new")

    assert too_early is None
    eventually(all_see(b"new", late, relay.tick))


def test_actors_go_on_when_the_relay_was_killed_and_started_again(host: Host) -> None:
    first, actors = host.start_process(), host.actors(2)
    host.publisher.publish(b"before")
    eventually(all_see(b"before", actors, host.pump))

    first.send_signal(signal.SIGKILL)
    first.wait()
    second = host.start_process()
    host.publisher.publish(b"after")

    eventually(all_see(b"after", actors, host.pump))
    second.terminate()
    assert second.wait(10) == ExitCode.TERMINATED
    beat = last_record(RunPaths.of(host.settings().run).process_heartbeat("relay-0")) or {}
    assert (beat["role"], beat["state"]) == ("relay", "passing on")


def test_an_actor_that_does_not_read_costs_the_relay_a_few_frames_of_memory(host: Host) -> None:
    process, reader = host.start_process(), host.actors(1)
    host.publisher.publish(bytes(FRAME_BYTES))
    eventually(all_see(bytes(FRAME_BYTES), reader, host.pump))
    with zmq.Context() as context, context.socket(zmq.SUB) as deaf:
        deaf.setsockopt(zmq.RCVHWM, 1)
        deaf.setsockopt(zmq.LINGER, 0)
        deaf.setsockopt(zmq.SUBSCRIBE, b"")
        deaf.connect(host.downstream)
        host.publisher.publish(b"0")
        eventually(all_see(b"0", reader, host.pump))
        before_bytes = psutil.Process(process.pid).memory_info().rss

        for number in range(60):
            frame = str(number).encode().ljust(FRAME_BYTES, b".")
            host.publisher.publish(frame)
            eventually(all_see(frame, reader, host.pump))

        grown_bytes = psutil.Process(process.pid).memory_info().rss - before_bytes
    assert grown_bytes < SLACK_BYTES


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--downstream is missing"),
        (("--downstream", "tcp://127.0.0.1:5602"), "choose another one"),
        (("--downstream", "tcp://10.0.0.5:5602"), "there are no keys"),
        (("--downstream", "ipc:///nowhere/at/all"), "make its folder first"),
        (("--index", "-1"), "--index must be from 0"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    process = start("launch/relay.py", "--runs-dir", str(folder), *words)
    try:
        said, _ = process.communicate(timeout=30)
    finally:
        end(process)

    assert process.returncode == ExitCode.CONFIGURATION
    lines = [line for line in said.splitlines() if line.startswith(("relay-0:", "python launch"))]
    assert len(lines) == 1
    assert message in lines[0]


def test_the_relay_needs_no_torch(host: Host) -> None:
    process, actors = host.start_process(), host.actors(1)
    host.publisher.publish(b"x")
    eventually(all_see(b"x", actors, host.pump))

    libraries = {Path(entry.path).name for entry in psutil.Process(process.pid).memory_maps()}

    assert not any(name.startswith("libtorch") for name in libraries)


def test_the_age_that_the_run_allows_is_that_of_its_actors(host: Host) -> None:
    settings = host.settings()
    aged = Settings(
        run=settings.run, endpoints=settings.endpoints, actor=ActorSettings(max_weight_age_s=2.0)
    )

    relay = build(RelayArgs(settings=aged, downstream=host.downstream), host.network())

    assert relay.max_age_s == 2.0
