"""Files and directories that appear whole or not at all, also after a power failure.

The order is always: write under another name, fsync, rename, fsync the parent directory. A failed
fsync is never tried again on the same file: what it left in the page cache is unknown.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

TEMPORARY_PREFIX = ".tmp-"
"""No reader matches a name that begins so."""


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file and wait until the disk has it; fails if the name is taken."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable: a rename alone may be lost with the power."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomic(path: Path, content: bytes) -> None:
    """Replace a small file; a reader sees the old content or the new one, never a part."""
    temporary = path.with_name(
        f"{TEMPORARY_PREFIX}{path.name}-{os.getpid()}-{secrets.token_hex(4)}"
    )
    try:
        write_synced(temporary, content)
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def publish_directory(temporary: Path, final: Path) -> None:
    """Give a complete directory its name; its files must be synced, `final` must be free."""
    sync_directory(temporary)
    temporary.rename(final)
    sync_directory(final.parent)


def remove_directory(path: Path) -> None:
    """Out of the readers' sight first, so that nobody meets a half-removed checkpoint."""
    hidden = path.with_name(f"{TEMPORARY_PREFIX}removed-{path.name}-{secrets.token_hex(4)}")
    path.rename(hidden)
    if hidden.is_symlink() or not hidden.is_dir():
        hidden.unlink()
    else:
        shutil.rmtree(hidden, ignore_errors=True)
