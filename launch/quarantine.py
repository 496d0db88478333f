"""Moves what is damaged out of the way, inside the run; nothing is deleted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from common.atomic_files import sync_directory, write_atomic
from common.jsonl import line_problem
from common.resume import LATEST_NAME, QUARANTINE_FOLDER
from common.run_paths import RunPaths
from common.trace_log import trace_line_problem
from launch.run_health import Finding


class Quarantine:
    """One repair: its folder has the layout of the run and the time as its name."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        stamp = time.strftime("%Y%m%d-%H%M%S")
        self.folder = _free_name(paths.root / QUARANTINE_FOLDER / stamp)

    def mend(self, finding: Finding, newest: Path | None) -> bool:
        """Whether it was mended; `newest` is the checkpoint that `latest` should name."""
        if finding.mend == "move":
            self._move(finding.path)
        elif finding.mend == "lines":
            is_trace = finding.path.parent == self._paths.traces
            self._take_lines(finding.path, trace_line_problem if is_trace else line_problem)
        elif finding.mend == "latest" and newest is not None:
            if finding.path.exists() or finding.path.is_symlink():
                self._move(finding.path)
            write_atomic(self._paths.checkpoints / LATEST_NAME, f"{newest.name}\n".encode())
        else:
            return False
        return True

    def _place(self, path: Path) -> Path:
        place = self.folder / path.relative_to(self._paths.root)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return place

    def _move(self, path: Path) -> None:
        place = self._place(path)
        path.rename(place)
        for folder in (place.parent, path.parent):
            sync_directory(folder)

    def _take_lines(self, path: Path, problem_of: Callable[[bytes], str]) -> None:
        """The damaged lines are safe in quarantine before the file is replaced."""
        with path.open("rb") as file:
            lines = list(file)
        bad = [line for line in lines if problem_of(line)]
        good = [line for line in lines if not problem_of(line)]
        write_atomic(self._place(path), b"".join(_ended(line) for line in bad))
        write_atomic(path, b"".join(_ended(line) for line in good))


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


def _free_name(path: Path) -> Path:
    """Two repairs within a second must not share a folder."""
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free
