"""Ray over two machines with addresses of their own: network namespaces with a cable between."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from common.checkpoint_files import list_numbered, verify_checkpoint
from common.jsonl import last_record, read_jsonl
from common.run_paths import RunPaths
from common.settings_files import load_settings
from tests.network_namespaces import Host, stop, two_hosts
from tests.processes import CORRIDOR_TOML, processes_mentioning
from tests.waiting import wait_until

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(400)]

PORT = 6379
DEADLINE_S = 120.0
CLUSTER_TOML = """
[cluster]
address = "{address}:6379"
actors_per_node = 1
node_dir = "{node_dir}"
"""
RAY = ("-m", "ray.scripts.scripts", "start", "--block", "--num-cpus", "2")
SMALL = ("--object-store-memory", str(80 << 20))


@pytest.fixture
def hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Host, Host]]:
    """A head on the near one, a node on the far one, both with the same token."""
    token = tmp_path / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    variables = {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with two_hosts() as (near, far):
        rays = [_head(near)]
        try:
            rays.append(_node(near, far))
            yield near, far
        finally:
            for ray in rays:
                _end_tree(ray)


def _head(near: Host) -> subprocess.Popen[str]:
    words = ("--head", "--node-ip-address", near.address, "--port", str(PORT))
    return near.start(*RAY, *words, "--include-dashboard=false", *SMALL)


def _node(near: Host, far: Host) -> subprocess.Popen[str]:
    probe = f"import socket; socket.create_connection(('{near.address}', {PORT}), 1)"
    wait_until("the head", lambda: far.run("-c", probe, timeout_s=5)[0] == 0, DEADLINE_S)
    address = ("--address", f"{near.address}:{PORT}")
    return far.start(*RAY, *address, "--node-ip-address", far.address, *SMALL)


def _end_tree(process: subprocess.Popen[str]) -> None:
    for child in psutil.Process(process.pid).children(recursive=True):
        child.kill()
    stop(process)


def _network_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def _pid(paths: RunPaths, peer: str) -> int:
    beats = [b for b in read_jsonl(paths.heartbeat) if f"{b['role']}-{b['index']}" == peer]
    return int(str(beats[-1]["pid"])) if beats else 0


def _metric(paths: RunPaths, name: str) -> float:
    value = (last_record(paths.metrics) or {}).get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _require_encryption(node_dir: Path, near: Host, far: Host) -> None:
    """The programs of the far node speak with keys, and who has none gets no answer."""
    (config,) = node_dir.glob("*/r/config.json")
    endpoints = load_settings(config).endpoints
    assert str(node_dir) in endpoints.keys_dir
    assert near.address in endpoints.replay_endpoint
    code, said = far.run("launch/control.py", str(config.parent), timeout_s=60)
    assert code == 0, said
    # A server without keys would at least refuse it.
    words = ("connect", endpoints.replay_endpoint, "r")
    code, said = far.run("-m", "tests.plain_peer", *words, timeout_s=60)
    assert (code, said.split()) == (0, ["ready"])


def test_a_run_over_two_addresses_is_encrypted_by_itself_and_trains(
    hosts: tuple[Host, Host], tmp_path: Path
) -> None:
    near, far = hosts
    config = tmp_path / "cluster.toml"
    section = CLUSTER_TOML.format(address=near.address, node_dir=tmp_path / "elsewhere")
    config.write_text(section + CORRIDOR_TOML.replace("actors = 2\n", ""), encoding="utf-8")
    paths = RunPaths(tmp_path / "r")
    driver = near.start(
        "launch/cluster.py",
        *("--config", str(config), "--runs-dir", str(tmp_path), "--run", "r", "--plain"),
        *("--metrics-interval-s", "0.5"),
    )

    def is_there(what: str, condition: bool) -> bool:
        assert driver.poll() is None, f"{what}: {driver.communicate()[0]}"
        return condition

    def wait(what: str, name: str, least: float) -> None:
        wait_until(what, lambda: is_there(what, _metric(paths, name) > least), DEADLINE_S)

    try:
        wait("updates", "updates", 20)
        wait_until("both actors", lambda: is_there("both", _pid(paths, "actor-1") > 0), DEADLINE_S)
        wait("steps of both", "global_step", _metric(paths, "global_step") + 500)
        learner, actor = _pid(paths, "learner-0"), _pid(paths, "actor-1")
        # It plays on the other machine, and nobody asked for the keys.
        assert _network_of(learner) != _network_of(actor)
        assert list(paths.keys.glob("**/*.pub"))
        _require_encryption(tmp_path / "elsewhere", near, far)
        driver.send_signal(signal.SIGINT)
        output, _ = driver.communicate(timeout=60)
        assert driver.returncode == 130, output
        verify_checkpoint(list_numbered(paths.checkpoints)[0])
        assert (paths.root / "logs" / "actor-1.log").exists()
        beats = list(read_jsonl(paths.process_heartbeat("actor-1")))
        assert (beats[-1]["pid"], beats[-1]["state"]) == (actor, "stopped")
    finally:
        stop(driver)
        for process in processes_mentioning(str(tmp_path)):
            if process.pid != os.getpid():
                process.kill()
