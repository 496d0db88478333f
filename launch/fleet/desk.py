"""How other commands speak with a driver: two small files in the run folder, for its user only."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from common.atomic_files import write_atomic
from common.errors import ConfigError
from common.run_paths import RunPaths
from launch.fleet.orders import Plain
from launch.fleet.settings import MOST_ACTORS

MAX_BYTES = 1 << 20


class Desk:
    """The driver writes how the cluster is and takes what others wish."""

    def __init__(self, paths: RunPaths) -> None:
        self._status = paths.cluster_status
        self._wish = paths.cluster_wish
        self._written = b""

    def open(self) -> None:
        """What an earlier driver left is not meant for us."""
        for path in (self._status, self._wish):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.open()

    def write_status(self, status: Plain) -> None:
        """Only what is new goes to the disk."""
        content = json.dumps(status).encode()
        if content != self._written:
            write_atomic(self._status, content)
            self._written = content

    def take_wish(self) -> int | None:
        """The number of actors that somebody wants, once."""
        wish = _read(self._wish)
        if wish is None:
            return None
        self._wish.unlink(missing_ok=True)
        actors = wish.get("actors")
        return actors if isinstance(actors, int) and 1 <= actors <= MOST_ACTORS else None

    def status(self) -> Plain | None:
        return _read(self._status)

    def wish_actors(self, actors: int) -> None:
        if not 1 <= actors <= MOST_ACTORS:
            raise ConfigError(f"--actors must be from 1 to {MOST_ACTORS}, got {actors}")
        write_atomic(self._wish, json.dumps({"actors": actors}).encode())


def _read(path: Path) -> Plain | None:
    """None when there is none, or something else in its place."""
    with contextlib.suppress(OSError, ValueError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            values = json.loads(file.read(MAX_BYTES))
        return values if isinstance(values, dict) else None
    return None
