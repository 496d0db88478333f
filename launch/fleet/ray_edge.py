"""The one place that knows Ray: a connection, the nodes, and a warden on each of them.

Ray carries orders and reports only, plain values of some kilobytes. What actors, replay server and
learner tell each other goes over ZeroMQ.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.atomic_files import write_synced
from common.endpoints import is_loopback
from common.errors import ConfigError, MarioError, PeerUnavailable
from common.extras import install_command
from common.keys import FOLDER_MODE
from common.logs import RareLog
from launch.fleet.gathering import Marks, Pieces
from launch.fleet.orders import Orders, Report, require_plain
from launch.fleet.placement import NodeFacts
from launch.fleet.warden import Warden
from launch.private_sockets import RAY_TOKEN

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
OBJECT_STORE_BYTES = 80 << 20
"""Near the least that Ray takes: nothing of ours lies in it."""
AUTH_MODE, TOKEN_PATH, TLS = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_USE_TLS"
TOKENS = (TOKEN_PATH, "RAY_AUTH_TOKEN")
STRANGER = """
import sys
from ray._raylet import GcsClient

GcsClient(address=sys.argv[1]).get_all_node_info(timeout=5)
"""
"""Ends with 0 only where the head of Ray answers."""
STRANGER_TIMEOUT_S = 20.0
LOCAL_VARIABLES = {
    AUTH_MODE: "token",
    "RAY_USAGE_STATS_ENABLED": "0",
}
MANY_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""With 0 Ray keeps to loopback, on Linux as well; otherwise it makes another address of it."""
CONNECT_TIMEOUT_S = 5.0
REMOVE_TIMEOUT_S = 5.0
ZERO_GPUS = "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"
"""Without it Ray announces what later versions do with 0 GPUs, which is what we mean by them."""


def require_extra() -> None:
    if find_spec("ray") is None:
        raise ConfigError(f"a cluster needs ray; run: {install_command('cluster')}")


@contextmanager
def connected(address: str, private: Path) -> Iterator[RayCluster]:
    """Ray at an address; for "local" one of our own, which ends with us and has its own token."""
    given: dict[str, object] = {"address": address}
    if address == "local":
        _prepare_token(private)
        given = {
            "address": "local",
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_node_ip_address": LOOPBACK,
        }
    elif address != "auto":
        _require_answer(address)
    os.environ.setdefault(ZERO_GPUS, "0")
    # Here and by name, because `--help` should not wait for Ray, nor need it.
    records = logging.getLogRecordFactory()
    ray = import_module("ray")
    try:
        ray.init(**given, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        words = " ".join(str(error).split())[:300]
        raise MarioError(f"no Ray at {address}: {words}; start it with: ray start") from error
    # Ray adds times of its own to every line of our logs.
    logging.setLogRecordFactory(records)
    try:
        yield RayCluster(ray)
    finally:
        ray.shutdown()


def require_guarded_ray(address: str) -> None:
    """Once connected, which turns the mode on where Ray finds a token: it is to carry secret keys.

    Our own mode does not tell that of the cluster: a Ray without one takes calls with a token too.
    """
    if os.environ.get(TLS) == "1":
        return
    has_token = os.environ.get(AUTH_MODE, "").lower() == "token"
    if not has_token or answers_strangers(address):
        raise ConfigError(
            f"Ray at {address} lets in whoever reaches it, and the keys of the nodes go through "
            f"it; start it with {AUTH_MODE}=token, here and on all nodes (docs/cluster.md)"
        )


def head_of(address: str) -> str:
    """HOST:PORT of the Ray that we are connected with."""
    if address not in ("auto", "local"):
        return address
    return str(import_module("ray").get_runtime_context().gcs_address)


def answers_strangers(address: str) -> bool:
    """Whether a process without a token is told something; Ray reads its mode once in a process."""
    environment = {name: value for name, value in os.environ.items() if name not in TOKENS}
    try:
        asked = subprocess.run(
            [sys.executable, "-c", STRANGER, head_of(address)],
            env={**environment, AUTH_MODE: "disabled"},
            capture_output=True,
            timeout=STRANGER_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


def _require_answer(address: str) -> None:
    """Ray itself would ask for a minute before it gives up."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise MarioError(f"no Ray at {address}: {error}; start it with: ray start") from error
    if is_loopback(host):
        os.environ.setdefault(MANY_MACHINES, "0")


def _prepare_token(private: Path) -> None:
    """Whoever may read the token may run anything here: it lies in a folder of this user."""
    for name, value in {**LOCAL_VARIABLES, MANY_MACHINES: "0"}.items():
        os.environ.setdefault(name, value)
    private.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    path = private / RAY_TOKEN
    path.unlink(missing_ok=True)
    write_synced(path, secrets.token_hex(32).encode())
    os.environ[TOKEN_PATH] = str(path)


class RayCluster:
    """Implements `launch.fleet.links.Cluster`."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self.home: str = ray.get_runtime_context().get_node_id()

    def nodes(self) -> Sequence[NodeFacts]:
        try:
            told = self._ray.nodes()
        except self._ray.exceptions.RayError as error:
            raise PeerUnavailable(f"Ray does not answer any more: {str(error)[:200]}") from error
        found = [
            NodeFacts(
                node_id=str(node["NodeID"]),
                address=str(node["NodeManagerAddress"]),
                cores=int(node["Resources"].get("CPU", 0)),
                gpus=int(node["Resources"].get("GPU", 0)),
            )
            for node in told
            if node["Alive"]
        ]
        return sorted(found, key=lambda node: (node.node_id != self.home, node.node_id))

    def open_node(self, facts: NodeFacts) -> RayNode:
        return RayNode(self._ray, facts, is_home=facts.node_id == self.home)


class RayNode:
    """Implements `launch.fleet.links.NodeLink`: at most one call of each kind is on its way."""

    def __init__(self, ray: Any, facts: NodeFacts, *, is_home: bool) -> None:
        self._ray = ray
        affinity = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        self._warden = (
            ray.remote(Warden)
            .options(
                # Actors are spread by us, by cores; only GPUs must not be given to others as well.
                num_cpus=0,
                num_gpus=facts.gpus if is_home else 0,
                # Again and again on its node; the supervisor then asks for its beginning.
                max_restarts=-1,
                scheduling_strategy=affinity(node_id=facts.node_id, soft=False),
            )
            .remote()
        )
        self._pending: dict[str, Any] = {}
        self._rare = RareLog()

    def tend(self, orders: Orders) -> Report | None:
        answer = self._ask("tend", orders.to_plain())
        return Report.from_plain(answer) if isinstance(answer, dict) else None

    def read_files(self, root: str, marks: Marks, *, is_last: bool = False) -> Pieces | None:
        answer = self._ask("read_files", root, marks, is_last)
        return answer if isinstance(answer, dict) else None

    def forget_files(self) -> None:
        self._pending.pop("read_files", None)

    def remove_files(self, root: str) -> None:
        """Waited for: the warden is ended next."""
        self._ray.wait([self._warden.remove_files.remote(root)], timeout=REMOVE_TIMEOUT_S)

    def close(self) -> None:
        self._ray.kill(self._warden)

    def _ask(self, method: str, *words: object) -> object:
        """Start the call if it is not on its way; its answer if it has come."""
        require_plain(words)
        try:
            if method not in self._pending:
                self._pending[method] = getattr(self._warden, method).remote(*words)
            ready, _ = self._ray.wait([self._pending[method]], timeout=0)
            return self._ray.get(self._pending.pop(method)) if ready else None
        except self._ray.exceptions.RayError as error:
            # Its node is gone, or Ray starts the warden again: the nodes will tell.
            if self._rare.allows(method, time.monotonic()):
                log.warning("a node does not answer", extra={"error": str(error)[:200]})
            return None
