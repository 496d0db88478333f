"""Temporary names of checkpoint writers: who made them, and whether that process is dead."""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from pathlib import Path

from common.atomic_files import TEMPORARY_PREFIX

STALE_AGE_S = 24 * 3600.0
"""A temporary directory of another host is a leftover after this; its writer cannot be asked."""
WRITER = re.compile(re.escape(TEMPORARY_PREFIX) + r"checkpoint-(?P<host>[\w.-]*)-(?P<pid>\d+)-\w+")


def temporary_checkpoint_name() -> str:
    """New at every call; it tells this host and this process."""
    return f"{TEMPORARY_PREFIX}checkpoint-{_host()}-{os.getpid()}-{secrets.token_hex(4)}"


def find_leftovers(checkpoints_dir: Path) -> list[Path]:
    """What dead writers left in the middle of their work."""
    if not checkpoints_dir.is_dir():
        return []
    return sorted(
        path
        for path in checkpoints_dir.iterdir()
        if path.name.startswith(TEMPORARY_PREFIX) and not _may_have_writer(path)
    )


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _host() -> str:
    return re.sub(r"[^\w.-]", "_", socket.gethostname())


def _may_have_writer(path: Path) -> bool:
    match = WRITER.fullmatch(path.name)
    if match is None:
        return False
    if match["host"] != _host():
        return time.time() - path.lstat().st_mtime < STALE_AGE_S
    pid = int(match["pid"])
    # Our own id: an earlier process had it, as in containers where every start is process 1.
    return pid != os.getpid() and is_alive(pid)
