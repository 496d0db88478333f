"""The runs of a folder: which there are, and one shared reader for each that somebody looks at."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Final

from common.errors import ConfigError
from common.ids import RUN_NAME_PATTERN
from common.run_paths import RunPaths
from launch.control_room.machines import goes_on
from launch.control_room.run_reader import RunReader
from launch.control_room.safe_files import modified_s

MAX_READERS: Final = 12
"""More runs than this are not kept in memory at once; the one not looked at for longest goes."""
MAX_RUNS: Final = 500
MAX_JUDGED: Final = 60
MARKS: Final = ("metrics.jsonl", "config.json", "heartbeats")
"""What makes a folder a run."""


@dataclass(slots=True)
class Library:
    """Names from an address lead to runs here and nowhere else."""

    folder: Path
    only: str = ""
    """The one run that is shown, where a run was given in place of a folder of runs."""
    _readers: OrderedDict[str, RunReader] = field(default_factory=OrderedDict)
    _serials: Iterator[int] = field(default_factory=count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def names(self, like: str = "") -> list[str]:
        """Runs with `like` in their names; the one of that very name, then what changed last."""
        try:
            found = [entry.name for entry in self.folder.iterdir()]
        except OSError:
            found = []
        runs = [name for name in found if like.lower() in name.lower() and self._is_run(name)]
        runs.sort(key=lambda name: (name == like, self.changed_s(name)), reverse=True)
        return runs[:MAX_RUNS]

    def changed_s(self, name: str) -> float:
        root = self.folder / name
        return max((modified_s(root / mark) or 0.0 for mark in MARKS), default=0.0)

    def names_going_on(self, limit: int) -> list[str]:
        """Of the runs that changed last, those that are not over."""
        now_s = time.time()
        names = self.names()[:MAX_JUDGED]
        going_on = (name for name in names if goes_on(RunPaths(self.folder / name), now_s))
        return list(islice(going_on, limit))

    def _is_run(self, name: str) -> bool:
        if RUN_NAME_PATTERN.fullmatch(name) is None or ".." in name:
            return False
        if self.only and name != self.only:
            return False
        root = self.folder / name
        # Links are not followed: one could lead to any folder of this user. Folders that may not be
        # looked into are no error: runs of other users may lie beside these.
        return not root.is_symlink() and any(modified_s(root / mark) is not None for mark in MARKS)

    def reader(self, name: str) -> RunReader | None:
        """The reader that all viewers of a run share; None when there is no such run."""
        with self._lock:
            if not self._is_run(name):
                self._readers.pop(name, None)
                return None
            reader = self._readers.get(name)
            if reader is None:
                paths = RunPaths(self.folder / name)
                reader = self._readers[name] = RunReader(paths, serials=self._serials)
            self._readers.move_to_end(name)
            while len(self._readers) > MAX_READERS:
                self._readers.popitem(last=False)
            return reader


def open_library(folder: str) -> Library:
    """A folder of runs, or one run."""
    path = Path(folder).expanduser()
    try:
        path = path.resolve()
        is_folder = path.is_dir()
        is_run = any((path / mark).exists() for mark in MARKS)
    except (OSError, RuntimeError, ValueError) as error:
        raise ConfigError(f"cannot read {folder}: {error}; give a folder of runs") from error
    if is_run:
        if RUN_NAME_PATTERN.fullmatch(path.name) is None:
            raise ConfigError(f"{path} is a run whose name no address can hold; rename it")
        return Library(path.parent, only=path.name)
    if not is_folder:
        raise ConfigError(f"no folder at {path}; give the folder that holds the runs")
    return Library(path)
