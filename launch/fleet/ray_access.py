"""Who may speak with a Ray: its token and ours."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from common.atomic_files import write_synced
from common.errors import ConfigError
from common.keys import FOLDER_MODE
from launch.fleet.settings import AUTO, LOCAL
from launch.private_sockets import RAY_TOKEN

AUTH_MODE, TOKEN_PATH, TLS = "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_USE_TLS"
TOKENS = (TOKEN_PATH, "RAY_AUTH_TOKEN")
REFUSED = 3
PROBE = f"""
import sys
from ray._raylet import GcsClient

try:
    GcsClient(address=sys.argv[1]).get_all_node_info(timeout=5)
except Exception as error:
    sys.exit({REFUSED} if type(error).__name__ == "AuthenticationError" else 1)
"""
"""Ends with 0 only where the head of Ray answers. Apart, because Ray reads its mode once in a
process, and would itself ask for minutes with a token that is refused."""
PROBE_TIMEOUT_S = 20.0
LOCAL_VARIABLES = {
    AUTH_MODE: "token",
    "RAY_USAGE_STATS_ENABLED": "0",
    # A process that Ray keeps ready for every core takes some of it and is never used.
    "RAY_num_workers_soft_limit": "0",
    # By default 15, which all programs would inherit: other users of the machine come first then,
    # and of 19, the most there is, actors keep too little distance from a learner.
    "RAY_worker_niceness": "0",
}
"""For a Ray of our own; what the user has set stays."""
MANY_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""With 0 Ray keeps to loopback, on Linux as well; otherwise it makes another address of it."""
TOKEN_HELP = "give this command the token of its head (docs/cluster.md#keys-and-tokens)"  # noqa: S105 # a hint


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
    if address not in (AUTO, LOCAL):
        return address
    return str(import_module("ray").get_runtime_context().gcs_address)


def answers_strangers(address: str) -> bool:
    """Whether a process without a token is told something."""
    environment = {name: value for name, value in os.environ.items() if name not in TOKENS}
    return _probe(head_of(address), {**environment, AUTH_MODE: "disabled"}) == 0


def require_our_token(address: str) -> None:
    """With a token that the head does not know, Ray would only say that it cannot connect.

    Where no mode is set, Ray turns that of tokens on as soon as it finds one.
    """
    if _probe(address, os.environ) != REFUSED:
        return
    if AUTH_MODE in os.environ or _probe(address, {**os.environ, AUTH_MODE: "token"}) != 0:
        raise ConfigError(f"Ray at {address} refuses our token; {TOKEN_HELP}")


def _probe(head: str, environment: Mapping[str, str]) -> int | None:
    """The exit code of a process that asks the head; None if it got no answer in time."""
    try:
        asked = subprocess.run(
            [sys.executable, "-c", PROBE, head],
            env=environment,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return asked.returncode


def prepare_token(private: Path) -> None:
    """Whoever may read the token may run anything here: it lies in a folder of this user."""
    for name, value in {**LOCAL_VARIABLES, MANY_MACHINES: "0"}.items():
        os.environ.setdefault(name, value)
    private.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    path = private / RAY_TOKEN
    path.unlink(missing_ok=True)
    write_synced(path, secrets.token_hex(32).encode())
    os.environ[TOKEN_PATH] = str(path)
