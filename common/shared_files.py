"""Names of shared-memory files; apart from `common/shared_slots.py` so that no torch is needed."""

from __future__ import annotations

import hashlib
import re
import tempfile
from pathlib import Path

from common.errors import BadMessage
from common.run_paths import RunPaths

_NAME = re.compile(r"warpzone-[A-Za-z0-9._-]{1,100}")


def shared_root() -> Path:
    memory = Path("/dev/shm")  # noqa: S108 - the memory file system, files are private
    return memory if memory.is_dir() else Path(tempfile.gettempdir())


def shared_prefix(paths: RunPaths) -> str:
    """What the shared files of this run begin with; no other run folder has the same."""
    return f"warpzone-{hashlib.sha256(str(paths.root).encode()).hexdigest()[:16]}-"


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
