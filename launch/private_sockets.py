"""The sockets of a local run, in a folder for this user only; what dead launchers left is swept."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.config import EndpointSettings
from common.config_learning import MAX_SHARDS
from common.errors import MarioError
from common.file_lock import held_lock, lock_holder
from common.shared_files import YOUNG_S

PREFIX = "warpzone-"
OWNER = "owner.lock"
"""Held by the launcher as long as it lives, however it ends."""
SOCKETS = ("replay", "weights", "telemetry", "control")
REPLAY_SOCKETS = ("replay", *(f"replay-{index}" for index in range(1, MAX_SHARDS)))
ALL_SOCKETS = (*SOCKETS, *REPLAY_SOCKETS[1:])
RAY_TOKEN = "ray-token"  # noqa: S105 - the name of a file
"""Of a Ray that a launcher has started for itself."""


@contextmanager
def private_endpoints(replay_shards: int = 1) -> Iterator[EndpointSettings]:
    """Local endpoints in a folder that only this user can enter; removed at the end."""
    folder = tempfile.mkdtemp(prefix=PREFIX)
    texts = {f"{name}_endpoint": f"ipc://{folder}/{name}" for name in SOCKETS}
    servers = (f"ipc://{folder}/{name}" for name in REPLAY_SOCKETS[:replay_shards])
    endpoints = EndpointSettings(**{**texts, "replay_endpoint": ",".join(servers)})
    try:
        with held_lock(Path(folder, OWNER), busy=f"{folder} belongs to process {{pid}}"):
            yield endpoints
    finally:
        remove_endpoints(endpoints)


def remove_endpoints(endpoints: EndpointSettings) -> None:
    """Remove the folder that `private_endpoints` made."""
    shutil.rmtree(private_folder(endpoints), ignore_errors=True)


def private_folder(endpoints: EndpointSettings) -> Path:
    return Path(endpoints.weights_endpoint.removeprefix("ipc://")).parent


def sweep_sockets() -> int:
    """Remove what launchers left that were killed; returns how many folders."""
    stale = [path for path in _temporary_root().glob(f"{PREFIX}*") if _is_abandoned(path)]
    for folder in stale:
        with contextlib.suppress(OSError):
            # By name, and the owner last: nothing else is ours to remove.
            for name in (*ALL_SOCKETS, RAY_TOKEN, OWNER):
                (folder / name).unlink(missing_ok=True)
            folder.rmdir()
    return len(stale)


def _temporary_root() -> Path:
    return Path(tempfile.gettempdir())


def _is_abandoned(folder: Path) -> bool:
    """The launcher is dead, and so are the programs that it started: none of them answers."""
    try:
        status = folder.lstat()
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
        # A young one may be between its making and its lock.
        if not is_ours or time.time() - status.st_mtime < YOUNG_S:
            return False
        if not os.path.lexists(folder / OWNER) or lock_holder(folder / OWNER) is not None:
            return False
    except (OSError, MarioError):
        return False
    return not any(_answers(folder / name) for name in ALL_SOCKETS)


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            return True
    return True
