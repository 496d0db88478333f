"""A learner's socket, a host of actors and a relay between them, over real sockets."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from common.channels import Network, Subscriber
from common.config import EndpointSettings, RunSettings, Settings
from common.transport import SocketOptions, ZmqNetwork
from launch.relay import Relay, RelayArgs, build
from tests.kept_network import kept
from tests.process_system import free_endpoints
from tests.processes import end, start
from tests.waiting import eventually

QUICK = SocketOptions(reconnect_ms=20, reconnect_max_ms=50)


class Host:
    """A learner's socket, and a folder for the sockets and files of the host of actors."""

    def __init__(self, folder: Path, stack: ExitStack, keys_dir: str = "") -> None:
        self._stack = stack
        self.folder = folder
        self.weights_endpoint = free_endpoints()["weights_endpoint"]
        self.downstream = f"ipc://{folder}/d"
        self.learner = self.network(keys_dir)
        self.publisher = self.learner.publisher(self.weights_endpoint)
        self.subscriptions = 0
        """That the learner has seen."""

    def network(self, keys_dir: str = "") -> Network:
        network = kept(ZmqNetwork(QUICK, keys_dir=keys_dir))
        self._stack.callback(network.close)
        return network

    def settings(self, keys_dir: str = "") -> Settings:
        return Settings(
            run=RunSettings(run="far", runs_dir=str(self.folder), metrics_interval_s=0.2),
            endpoints=EndpointSettings(
                weights_endpoint=self.weights_endpoint,
                telemetry_endpoint=f"ipc://{self.folder}/t",
                keys_dir=keys_dir,
            ),
        )

    def relay(self, keys_dir: str = "") -> Relay:
        args = RelayArgs(settings=self.settings(keys_dir), downstream=self.downstream)
        return build(args, self.network(keys_dir))

    def actors(self, count: int) -> list[Subscriber]:
        network = self.network()
        return [network.subscriber(self.downstream) for _ in range(count)]

    def pump(self) -> None:
        self.subscriptions += self.publisher.pump()

    def start_process(self) -> subprocess.Popen[str]:
        words = [
            *("--downstream", self.downstream, "--weights-endpoint", self.weights_endpoint),
            *("--telemetry-endpoint", f"ipc://{self.folder}/t", "--run", "far"),
            *("--runs-dir", str(self.folder), "--metrics-interval-s", "0.2"),
        ]
        process = start("launch/relay.py", *words)
        self._stack.callback(end, process)
        return process


def all_see(
    expected: bytes, actors: Sequence[Subscriber], turn: Callable[[], object]
) -> Callable[[], bool]:
    """Whether each actor has seen the frame, some time since this was made."""
    missing = set(range(len(actors)))

    def look() -> bool:
        turn()
        for index in tuple(missing):
            frame = actors[index].newest(0)
            if frame is not None and bytes(frame) == expected:
                missing.discard(index)
        return not missing

    return look


def turns_of(host: Host, relay: Relay) -> Callable[[], None]:
    """One turn of the learner's socket and of the relay."""

    def turn() -> None:
        host.pump()
        relay.tick()

    return turn


def await_first_frame(host: Host, relay: Relay) -> None:
    turn = turns_of(host, relay)

    def has_come() -> bool:
        turn()
        return relay.waits_for() is None

    eventually(has_come)
