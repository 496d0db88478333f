"""Which checkpoint a run continues from; a run that has checkpoints never starts afresh silently.

Order: an explicit path, the newest valid numbered one, the one that `latest` names, a bounded
search below the runs folder.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from common.abandoned import set_aside_in
from common.atomic_files import write_atomic
from common.checkpoint_files import (
    FILE_NAME,
    MANIFEST_NAME,
    NUMBERED_NAME,
    list_numbered,
    verify_checkpoint,
)
from common.errors import CheckpointCorrupt, CheckpointMissing

log = logging.getLogger(__name__)

CHECKPOINTS_FOLDER = "checkpoints"
LATEST_NAME = "latest"
BEST_NAME = "best"
EVALUATING_NAME = "evaluating"
SPARED_NAMES = (BEST_NAME, EVALUATING_NAME)
"""Pointers to checkpoints that pruning leaves alone."""
QUARANTINE_FOLDER = "quarantine"
"""Where `launch/doctor.py --repair` moves what is damaged; no checkpoint is taken from there."""
REPLAY_FOLDER = "replay"
"""Of saved replays: they have the names of checkpoints and are none."""
MAX_POINTER_BYTES = 256
MAX_SEARCHED_ENTRIES = 20_000

ResumeSource = Literal["explicit", "numbered", "latest", "search"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSearch:
    """What a search came by."""

    root: Path
    found: tuple[Path, ...]
    """Those with the most agent steps first, valid or not."""
    entries: int
    is_whole: bool
    """False when it ended at its bound: there may be more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePoint:
    path: Path
    agent_steps: int
    source: ResumeSource
    skipped: tuple[str, ...] = ()
    """What was newer but corrupt, in words."""
    search: CheckpointSearch | None = None
    """What found it, where it had to be searched for."""


def find_resume(
    run_dir: Path, *, explicit: Path | None = None, runs_root: Path | None = None
) -> ResumePoint | None:
    """The checkpoint to continue from, verified; None when the run has none at all.

    Other runs below `runs_root` are searched only when this run has no checkpoint, valid or not:
    damage must not turn one run into another.
    """
    try:
        return _find_explicit(explicit) if explicit is not None else _find_own(run_dir, runs_root)
    except OSError as exc:
        where = exc.filename or explicit or run_dir
        raise CheckpointMissing(
            f"cannot look at {where}: {exc.strerror}; give a checkpoint or run directory "
            "that can be read"
        ) from exc


def _find_own(run_dir: Path, runs_root: Path | None) -> ResumePoint | None:
    rejected: list[str] = []
    checkpoints = run_dir / CHECKPOINTS_FOLDER
    if os.path.lexists(checkpoints) and not checkpoints.is_dir():
        raise CheckpointCorrupt(f"{checkpoints}: expected a folder, got something else; move it")
    stages: list[tuple[ResumeSource, Iterable[Path]]] = [
        ("numbered", list_numbered(checkpoints)),
        ("latest", _pointed(checkpoints, LATEST_NAME)),
    ]
    for source, candidates in stages:
        if point := _first_valid(candidates, source, rejected):
            return point
    if point := _first_found(_search(run_dir), rejected):
        return point
    if rejected:
        raise _none_valid(run_dir, rejected)
    if withdrawn := _withdrawn(run_dir):
        raise CheckpointMissing(
            f"{run_dir}: expected a checkpoint, got only {len(withdrawn)} in quarantine or "
            f"abandoned, such as {withdrawn[0]}; give one with --resume PATH, or use --fresh"
        )
    return _find_elsewhere(runs_root) if runs_root is not None else None


def read_pointer(checkpoints_dir: Path, name: str) -> str | None:
    """The checkpoint name that a pointer file (`latest`, `best`) holds, if it holds a sane one."""
    try:
        descriptor = os.open(checkpoints_dir / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            text = file.read(MAX_POINTER_BYTES).decode("ascii", errors="replace").strip()
    except OSError:
        return None
    return text if FILE_NAME.fullmatch(text) and ".." not in text else None


def mark_best(checkpoints_dir: Path, name: str) -> None:
    """Let `best` name a checkpoint: pruning then spares it."""
    write_atomic(checkpoints_dir / BEST_NAME, f"{name}\n".encode())


def mark_evaluating(checkpoints_dir: Path, name: str | None) -> None:
    """Spare a checkpoint from pruning until it is known how good it is; None: no longer."""
    if name is None:
        (checkpoints_dir / EVALUATING_NAME).unlink(missing_ok=True)
    else:
        write_atomic(checkpoints_dir / EVALUATING_NAME, f"{name}\n".encode())


def _find_explicit(path: Path) -> ResumePoint:
    """A checkpoint directory is taken as it is; of a run directory the newest valid one."""
    if (path / MANIFEST_NAME).exists() or NUMBERED_NAME.fullmatch(path.name):
        if not path.exists():
            raise CheckpointMissing(f"{path} does not exist; give a checkpoint or run directory")
        manifest = verify_checkpoint(path)
        return ResumePoint(path=path, agent_steps=manifest.agent_steps, source="explicit")
    folder = path if path.name == CHECKPOINTS_FOLDER else path / CHECKPOINTS_FOLDER
    candidates = [*list_numbered(folder), *_pointed(folder, LATEST_NAME)]
    rejected: list[str] = []
    if point := _first_valid(candidates, "explicit", rejected):
        return point
    if rejected:
        raise _none_valid(path, rejected)
    raise CheckpointMissing(f"{path} holds no checkpoint; give a checkpoint or run directory")


def _find_elsewhere(runs_root: Path) -> ResumePoint | None:
    rejected: list[str] = []
    point = _first_found(_search(runs_root), rejected)
    if point is None and rejected:
        raise _none_valid(runs_root, rejected)
    return point


def _pointed(checkpoints_dir: Path, name: str) -> list[Path]:
    target = read_pointer(checkpoints_dir, name)
    return [checkpoints_dir / target] if target and (checkpoints_dir / target).exists() else []


def _withdrawn(run_dir: Path) -> list[Path]:
    """Checkpoints that were taken out of use: a run that had any does not begin afresh silently."""
    abandoned = set_aside_in(run_dir / CHECKPOINTS_FOLDER)
    return [*abandoned, *_search(run_dir / QUARANTINE_FOLDER).found]


def _search(root: Path) -> CheckpointSearch:
    """Checkpoint directories below `root`: links not followed, temporary ones not entered, bounded.

    Level by level, so that a deep folder of something else does not use up the bound before the
    checkpoints of all runs are seen.
    """
    pending, found, seen = deque([root]), [], 0
    while pending and seen <= MAX_SEARCHED_ENTRIES:
        for entry in _entries(pending.popleft()):
            seen += 1
            if seen > MAX_SEARCHED_ENTRIES:
                log.warning("checkpoint search cut short", extra={"entries": seen})
                break
            if entry.name.startswith(".") or not entry.is_dir(follow_symlinks=False):
                continue
            if NUMBERED_NAME.fullmatch(entry.name):
                found.append(Path(entry.path))
            elif entry.name not in (QUARANTINE_FOLDER, REPLAY_FOLDER):
                pending.append(Path(entry.path))
    found.sort(key=lambda path: (path.name, str(path)), reverse=True)
    return CheckpointSearch(
        root=root,
        found=tuple(found),
        entries=min(seen, MAX_SEARCHED_ENTRIES),
        is_whole=seen <= MAX_SEARCHED_ENTRIES,
    )


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as exc:
        log.debug("folder not searched", extra={"error": str(exc)})


def _first_found(search: CheckpointSearch, rejected: list[str]) -> ResumePoint | None:
    point = _first_valid(search.found, "search", rejected)
    return None if point is None else replace(point, search=search)


def _first_valid(
    candidates: Iterable[Path], source: ResumeSource, rejected: list[str]
) -> ResumePoint | None:
    """The first candidate that verifies; each other one is warned of once and added."""
    for path in candidates:
        try:
            manifest = verify_checkpoint(path)
        except CheckpointCorrupt as exc:
            if not any(line.startswith(f"{path}:") for line in rejected):
                log.warning("corrupt checkpoint skipped", extra={"error": str(exc)})
                rejected.append(f"{path}: {exc}")
        else:
            return ResumePoint(
                path=path,
                agent_steps=manifest.agent_steps,
                source=source,
                skipped=tuple(rejected),
            )
    return None


def _none_valid(where: Path, rejected: list[str]) -> CheckpointCorrupt:
    return CheckpointCorrupt(
        f"{where}: expected a valid checkpoint, got {len(rejected)} corrupt: {rejected[0]}. "
        "Give another one with --resume, or begin a new run."
    )
