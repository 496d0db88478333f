"""Ray as we use it: a connection, the nodes, and a warden on each of them.

Ray carries orders and reports only, plain values of some kilobytes. What actors, replay server and
learner tell each other goes over ZeroMQ.
"""

from __future__ import annotations

import atexit
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from common.endpoints import is_loopback
from common.errors import ConfigError, ExitCode, MarioError, PeerUnavailable
from common.extras import install_command
from common.logs import RareLog
from launch.fleet.gathering import Marks, Pieces
from launch.fleet.head_calls import Clock, RepeatedQuestion, ends_within
from launch.fleet.orders import Orders, Report, require_plain
from launch.fleet.placement import NodeFacts
from launch.fleet.ray_access import MANY_MACHINES, TOKEN_HELP, prepare_token, require_our_token
from launch.fleet.settings import AUTO, LOCAL
from launch.fleet.warden import Warden

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
OBJECT_STORE_BYTES = 80 << 20
"""Near the least that Ray takes: nothing of ours lies in it."""
CONNECT_TIMEOUT_S = 5.0
REMOVE_TIMEOUT_S = 5.0
SHUTDOWN_TIMEOUT_S = 20.0
"""It takes 7 s where the head is gone."""
HEAD_DEADLINE, HEAD_DEADLINE_S = "RAY_gcs_rpc_server_reconnect_timeout_s", 300
"""So long after its head is gone Ray ends the process, by default after a minute: the learner's
last checkpoint may take longer than that."""
TEND_INTERVAL_S = 1.0
"""Between two calls with the same orders: each wakes four processes, on cores that train."""
MOST_WORDS = 4_000
START_HELP = "start it with: ray start"
ZERO_GPUS = "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"
"""Without it Ray announces what later versions do with 0 GPUs, which is what we mean by them."""


def require_extra() -> None:
    if find_spec("ray") is None:
        raise ConfigError(f"a cluster needs ray; run: {install_command('cluster')}")


@contextmanager
def connected(address: str, private: Path) -> Iterator[RayCluster]:
    """Ray at an address; for "local" one of our own, which ends with us and has its own token."""
    given: dict[str, object] = {"address": address}
    if address == LOCAL:
        prepare_token(private)
        given = {
            "address": LOCAL,
            "include_dashboard": False,
            "object_store_memory": OBJECT_STORE_BYTES,
            "_node_ip_address": LOOPBACK,
        }
    elif address != AUTO:
        _require_answer(address)
        require_our_token(address)
    os.environ.setdefault(ZERO_GPUS, "0")
    os.environ.setdefault(HEAD_DEADLINE, str(HEAD_DEADLINE_S))
    # Here and by name, because `--help` should not wait for Ray, nor need it.
    records = logging.getLogRecordFactory()
    ray = import_module("ray")
    _initialise(ray, address, given)
    # Ray adds times of its own to every line of our logs.
    logging.setLogRecordFactory(records)
    _quiet()
    try:
        yield RayCluster(ray)
    finally:
        if not ends_within(ray.shutdown, SHUTDOWN_TIMEOUT_S):
            log.warning("Ray does not let go of us")
            # Ray's own turn at the end of the process comes later, and would wait again.
            atexit.register(_leave_at_once)


def _leave_at_once() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(ExitCode.TEMPORARY)


def _initialise(ray: Any, address: str, given: Mapping[str, object]) -> None:
    try:
        ray.init(**given, log_to_driver=False, logging_level=logging.ERROR)
    # A start that takes too long is told with a bare Exception, and so are others of Ray's.
    except Exception as error:
        words = " ".join(str(error).split())[:300]
        if address == LOCAL:
            raise MarioError(f"no Ray of our own could be started: {words}; try again") from error
        if type(error).__name__ == "AuthenticationError":
            raise ConfigError(f"Ray at {address}: {words}; {TOKEN_HELP}") from error
        hint = f"{START_HELP}; if it runs, {TOKEN_HELP}"
        raise MarioError(f"no Ray at {address}: {words}; {hint}") from error


def _quiet() -> None:
    """What Ray says of lost nodes, dozens of lines, goes to our log; it has no setting for that."""
    worker: Any = import_module("ray._private.worker")
    worker.print_to_stdstream = _note_words


def _note_words(data: Mapping[str, Any], **_: object) -> None:
    log.info("Ray says", extra={"words": "\n".join(map(str, data.get("lines", ())))[:MOST_WORDS]})


def _require_answer(address: str) -> None:
    """Ray itself would ask for a minute before it gives up."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise MarioError(f"no Ray at {address}: {error}; {START_HELP}") from error
    if is_loopback(host):
        os.environ.setdefault(MANY_MACHINES, "0")


class RayCluster:
    """Implements `launch.fleet.links.Cluster`."""

    def __init__(self, ray: Any, clock: Clock = time.monotonic) -> None:
        self._ray = ray
        self._question: RepeatedQuestion[Any] = RepeatedQuestion(ray.nodes, clock)
        self.home: str = ray.get_runtime_context().get_node_id()

    def nodes(self) -> Sequence[NodeFacts]:
        try:
            told = self._question.answer()
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

    def __init__(
        self, ray: Any, facts: NodeFacts, *, is_home: bool, clock: Clock = time.monotonic
    ) -> None:
        self._ray = ray
        self._clock = clock
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
        self._told: tuple[Orders | None, float] = (None, 0.0)
        """The newest orders but for their floor, and when they were told."""
        self._rare = RareLog()

    def tend(self, orders: Orders) -> Report | None:
        # The floor rises with the clock, and one of a moment ago is as good.
        same, now_s = replace(orders, floor=0), self._clock()
        if "tend" not in self._pending:
            told, told_s = self._told
            if same == told and now_s - told_s < TEND_INTERVAL_S:
                return None
            self._told = (same, now_s)
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
