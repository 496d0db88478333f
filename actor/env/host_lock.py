"""A lock that one process of a host holds at a time, and a note beside it that says who and why.

The kernel frees the lock when its holder dies, so a dead holder never blocks anybody.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from common.errors import ConfigError, ConstructionTimeout

log = logging.getLogger(__name__)

_POLL_INTERVAL_S: Final = 0.05
_PRIVATE_MODE: Final = 0o700


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds the lock and what it is doing."""

    pid: int
    role: str
    index: int
    stage: str
    since_unix_s: float

    def __str__(self) -> str:
        held_s = max(0.0, time.time() - self.since_unix_s)
        name = f"{self.role}-{self.index} (pid {self.pid})"
        return f"{name}, in stage '{self.stage}', for {held_s:.0f} s"


def default_lock_path() -> Path:
    """The same for all processes of this user on this host, whatever run they belong to."""
    folder = Path(tempfile.gettempdir()) / f"warpzone-{os.getuid()}"
    folder.mkdir(mode=_PRIVATE_MODE, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise ConfigError(f"{folder} belongs to somebody else; remove it or set TMPDIR")
    return folder / "construction.lock"


class HostLock:
    """Not reentrant; the file stays when the lock is free."""

    def __init__(self, path: Path, *, role: str, index: int) -> None:
        self._path = path
        self._note_path = path.with_suffix(".holder.json")
        self._role = role
        self._index = index
        self._since_unix_s = 0.0

    @contextmanager
    def held(self, *, deadline: float, clock: Callable[[], float]) -> Iterator[None]:
        """Wait for the lock until `clock()` reaches the deadline, and free it at the end."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # A Python descriptor is closed on exec, so no child process inherits the lock.
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._acquire(descriptor, deadline, clock)
            self._since_unix_s = time.time()
            self._report_takeover()
            try:
                yield
            finally:
                self._note_path.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def note_stage(self, stage: str) -> None:
        """Tell those who wait what the holder is doing; only the holder may call this."""
        holder = Holder(
            pid=os.getpid(),
            role=self._role,
            index=self._index,
            stage=stage,
            since_unix_s=self._since_unix_s,
        )
        # Renamed into place: a reader never sees half a note.
        draft = self._note_path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(asdict(holder)))
        draft.replace(self._note_path)

    def holder(self) -> Holder | None:
        """The last note, or None when there is no readable one."""
        try:
            return Holder(**json.loads(self._note_path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _report_takeover(self) -> None:
        # A holder that ends in order removes its note, so a note that is left is a dead one's.
        if (dead := self.holder()) is not None:
            log.warning("construction lock taken over from a dead process", extra=asdict(dead))

    def _acquire(self, descriptor: int, deadline: float, clock: Callable[[], float]) -> None:
        has_told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if clock() >= deadline:
                    raise ConstructionTimeout(
                        f"the construction lock {self._path} was not free before the deadline; "
                        f"held by {self.holder() or 'an unknown process'}"
                    ) from None
                if not has_told:
                    log.info("waiting for the construction lock", extra={"holder": self.holder()})
                    has_told = True
                time.sleep(_POLL_INTERVAL_S)
            else:
                return
