"""The names of films in `videos/`, and which of them stay."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Final

from common.atomic_files import TEMPORARY_PREFIX

FILM_FILE: Final = re.compile(r"eval-(\d{11})-(best|worst)\.(mp4|png)")
"""Agent steps, which of the two, and what: the film or its contact sheet."""


def film_name(agent_steps: int, which: str) -> str:
    """Without the suffix: .mp4 is the film, .png its contact sheet."""
    return f"eval-{agent_steps:011}-{which}"


def prune_films(folder: Path, keep: int) -> None:
    """Let the films of the newest evaluations stay, and remove what a killed writer left.

    By age, not by agent steps: a run may go back to an older checkpoint.
    """
    files_by_evaluation: dict[str, list[Path]] = {}
    newest: dict[str, int] = {}
    for path in _entries(folder):
        if path.name.startswith(TEMPORARY_PREFIX):
            _remove(path)
        if named := FILM_FILE.fullmatch(path.name):
            evaluation = named[1]
            files_by_evaluation.setdefault(evaluation, []).append(path)
            with contextlib.suppress(OSError):
                written_ns = path.lstat().st_mtime_ns
                newest[evaluation] = max(newest.get(evaluation, 0), written_ns)
    for evaluation in sorted(newest, key=lambda one: (newest[one], one), reverse=True)[keep:]:
        for path in files_by_evaluation[evaluation]:
            _remove(path)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
