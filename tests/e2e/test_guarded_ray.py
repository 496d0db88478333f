"""Whom a real Ray answers: those with its token, and nobody else."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from common.errors import ConfigError
from launch.fleet import ray_access
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
def test_a_ray_with_a_token_answers_neither_strangers_nor_those_with_another_one(
    mode: str, is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = tmp_path / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    # We ourselves have it either way, as a driver has.
    monkeypatch.setenv(ray_access.AUTH_MODE, "token")
    monkeypatch.setenv(ray_access.TOKEN_PATH, str(token))
    head = subprocess.Popen(
        [sys.executable, "-c", HEAD],
        env={**os.environ, ray_access.AUTH_MODE: mode, "RAY_USAGE_STATS_ENABLED": "0"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert head.stdout is not None
        address = next(line.split()[1] for line in head.stdout if line.startswith("head "))

        assert ray_access.answers_strangers(address) is is_open
        ray_access.require_our_token(address)
        token.write_text(secrets.token_hex(32))
        with nullcontext() if is_open else pytest.raises(ConfigError, match="refuses our token"):
            ray_access.require_our_token(address)
        head.communicate("", timeout=60)
    finally:
        end(head)
