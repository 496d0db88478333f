"""A Ray cluster of several nodes on this machine, and a run on it that tests may disturb."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from common.jsonl import last_record, read_jsonl
from common.run_paths import RunPaths
from tests.processes import CORRIDOR_TOML, end, processes_mentioning, start
from tests.waiting import wait_until

LOOPBACK = "127.0.0.1"
CORES = 1
DEADLINE_S = 90.0
CLUSTER_TOML = """
[cluster]
address = "{address}"
actors_per_node = {per_node}
keys = "always"
node_dir = "{node_dir}"
"""


class Nodes:
    """A head and more nodes, all bound to loopback and with a token."""

    def __init__(self, folder: Path) -> None:
        token = folder / "token"
        token.write_text(secrets.token_hex(32))
        token.chmod(0o600)
        self.variables = {
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(token),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        os.environ.update(self.variables)
        # Here, because Ray takes a second to import.
        utilities: Any = import_module("ray.cluster_utils")
        self._cluster = utilities.Cluster(initialize_head=True, head_node_args=self._arguments())
        self.address = str(self._cluster.address)

    def _arguments(self) -> Mapping[str, object]:
        return {
            "node_ip_address": LOOPBACK,
            "num_cpus": CORES,
            "object_store_memory": 80 << 20,
            "include_dashboard": False,
        }

    def add(self) -> Any:
        return self._cluster.add_node(**self._arguments(), wait=False)

    def remove(self, node: Any) -> None:
        """As if the machine had lost its power."""
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()
        for name in self.variables:
            os.environ.pop(name, None)


@contextmanager
def ray_nodes(folder: Path) -> Iterator[Nodes]:
    nodes = Nodes(folder)
    try:
        yield nodes
    finally:
        nodes.close()


class ClusterRun:
    """`python launch/cluster.py` on the corridor; close it whatever happens."""

    def __init__(self, folder: Path, nodes: Nodes | None, *words: str) -> None:
        """Without nodes on a Ray of its own."""
        self.folder = folder
        self.paths = RunPaths(folder / "r")
        config = folder / "cluster.toml"
        corridor = CORRIDOR_TOML.replace("actors = 2\n", "")
        address = "local" if nodes is None else nodes.address
        section = CLUSTER_TOML.format(address=address, per_node=1, node_dir=folder / "elsewhere")
        config.write_text(section + corridor, encoding="utf-8")
        self.words = ("--config", str(config), "--runs-dir", str(folder), "--run", "r")
        self.driver = start(
            "launch/cluster.py",
            *self.words,
            *("--plain", "--metrics-interval-s", "0.5", *words),
            env={} if nodes is None else nodes.variables,
        )

    def metric(self, name: str) -> float:
        value = (last_record(self.paths.metrics) or {}).get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    def status(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.paths.cluster_status.read_bytes()))
        except (OSError, ValueError):
            return {}

    def pid(self, peer: str) -> int:
        beat = last_record(self.paths.process_heartbeat(peer)) or {}
        return int(str(beat.get("pid", 0)))

    def wait(self, what: str, condition: Callable[[], bool]) -> float:
        def is_there() -> bool:
            assert self.driver.poll() is None, self.driver.communicate()[0]
            return condition()

        return wait_until(what, is_there, DEADLINE_S)

    def told(self) -> list[object]:
        """Numbers of environments of which the learner was told."""
        return [line["value"] for line in read_jsonl(self.paths.control_log)]

    def wait_for_steps(self) -> None:
        """Until the run has gone on for a while from now."""
        wanted = self.metric("global_step") + 300
        self.wait("agent steps", lambda: self.metric("global_step") > wanted)

    def actors(self) -> set[str]:
        """Of all nodes, those whose process lives."""
        mark = "--index"
        return {
            words[words.index(mark) + 1]
            for process in self.left()
            if mark in (words := _words_of(process)) and "actor" in words
        }

    def relays(self) -> set[object]:
        """Those that have passed on a version."""
        beats = read_jsonl(self.paths.heartbeat)
        return {b["index"] for b in beats if b["role"] == "relay" and b["state"] == "passing on"}

    def left(self) -> list[psutil.Process]:
        """Processes of this run that are still there."""
        return processes_mentioning(str(self.folder / "r")) + processes_mentioning(
            str(self.folder / "elsewhere")
        )

    def close(self) -> None:
        end(self.driver)
        for process in self.left():
            process.kill()


def _words_of(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []
