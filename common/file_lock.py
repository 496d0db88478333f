"""Lock files: one process holds one, its death releases it; none is opened through a link."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from common.errors import ConfigError

RETRY_S = 0.05


@contextmanager
def held_lock(path: Path, *, busy: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock; after `wait_s` it is refused with `busy`, in which {pid} is the holder."""
    file = _take(path, busy, time.monotonic() + wait_s)
    with file:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def lock_holder(path: Path) -> str | None:
    """The process id that holds the lock, or None."""
    if not os.path.lexists(path):
        return None
    with _opened(path, os.O_RDONLY) as file:
        return None if _try_lock(file, path, fcntl.LOCK_SH) else _holder(file)


def _take(path: Path, busy: str, end_s: float) -> TextIO:
    while True:
        file = _opened(path, os.O_RDWR | os.O_CREAT)
        if not _try_lock(file, path, fcntl.LOCK_EX):
            holder = _holder(file)
            file.close()
            if time.monotonic() >= end_s:
                raise ConfigError(busy.replace("{pid}", holder))
            time.sleep(RETRY_S)
        elif _is_at(file, path):
            return file
        else:
            # Its folder was moved aside between the opening and the lock: look again.
            file.close()


def _opened(path: Path, flags: int) -> TextIO:
    # Not blocking: a pipe in its place would wait for ever.
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise _refusal(path, error.strerror) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refusal(path, "not a regular file")
    if flags & os.O_ACCMODE == os.O_RDONLY:
        return os.fdopen(descriptor, "r", encoding="ascii", errors="replace")
    return os.fdopen(descriptor, "r+", encoding="ascii", errors="replace")


def _try_lock(file: TextIO, path: Path, kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        file.close()
        raise _refusal(path, error.strerror) from error
    return True


def _is_at(file: TextIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except OSError:
        return False


def _holder(file: TextIO) -> str:
    file.seek(0)
    return file.read(32).strip() or "unknown"


def _refusal(path: Path, reason: str | None) -> ConfigError:
    return ConfigError(
        f"cannot open the lock {path}: {reason}; mend or move it, or choose another --run"
    )
