"""Whether a real Ray answers somebody without its token."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from launch.fleet import ray_edge
from tests.processes import end

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]

HEAD = """
import sys
from ray.cluster_utils import Cluster

head = {"node_ip_address": "127.0.0.1", "num_cpus": 1, "object_store_memory": 80 << 20}
cluster = Cluster(initialize_head=True, head_node_args={**head, "include_dashboard": False})
print("head", cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@pytest.mark.parametrize(("mode", "is_open"), [("disabled", True), ("token", False)])
def test_only_a_ray_without_a_token_answers_strangers(
    mode: str, is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    # We ourselves have it either way, as a driver has.
    monkeypatch.setenv(ray_edge.AUTH_MODE, "token")
    monkeypatch.setenv(ray_edge.TOKEN_PATH, str(token))
    head = subprocess.Popen(
        [sys.executable, "-c", HEAD],
        env={**os.environ, ray_edge.AUTH_MODE: mode, "RAY_USAGE_STATS_ENABLED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert head.stdout is not None
        address = next(line.split()[1] for line in head.stdout if line.startswith("head "))

        assert ray_edge.answers_strangers(address) is is_open
        head.communicate("", timeout=60)
    finally:
        end(head)
