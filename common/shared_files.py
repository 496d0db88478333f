"""Names of shared-memory files; apart from `common/shared_slots.py` so that no torch is needed."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import stat
import tempfile
import time
from pathlib import Path

from common.errors import BadMessage
from common.run_paths import RunPaths

_OF_RUNS = "warpzone-run-"
YOUNG_S = 60.0
"""What is younger may be between its making and its lock, and is nobody's leftover."""
_NAME = re.compile(r"warpzone-[A-Za-z0-9._-]{1,100}")


def shared_root() -> Path:
    memory = Path("/dev/shm")  # noqa: S108 - the memory file system, files are private
    return memory if memory.is_dir() else Path(tempfile.gettempdir())


def shared_prefix(paths: RunPaths) -> str:
    """What the shared files of this run begin with; no other run folder has the same."""
    return f"{_OF_RUNS}{hashlib.sha256(os.fsencode(paths.root)).hexdigest()[:16]}-"


def shared_path(name: str) -> Path:
    """Where a file lies whose name may come off the wire."""
    if _NAME.fullmatch(name) is None:
        raise BadMessage("shared_file", "unexpected name")
    return shared_root() / name


def remove_shared(prefix: str) -> int:
    """Unlink the files of earlier lives; mappings that are in use stay valid. Returns how many."""
    stale = [path for path in shared_root().glob(f"{prefix}*") if path.is_file()]
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


def hold_shared(file: int) -> None:
    """Mark an open file as in use: its mapping keeps the mark until the last process ends."""
    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)


def sweep_shared() -> int:
    """Unlink the files of any run that no living process has mapped. Returns how many."""
    return sum(_unlink_unused(path) for path in shared_root().glob(f"{_OF_RUNS}*"))


def _unlink_unused(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(file)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
        if not is_ours or time.time() - status.st_mtime < YOUNG_S:
            return False
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
            return True
        return False
    finally:
        os.close(file)
