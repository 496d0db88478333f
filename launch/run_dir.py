"""The folder of a run: made, locked, described; old runs are moved aside, never deleted."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from common.config import RunSettings, Settings
from common.errors import ConfigError, MarioError
from common.file_lock import held_lock
from common.run_config import write_config
from common.run_paths import RunPaths

__all__ = [
    "BUDGETS",
    "locked",
    "make_run_dir",
    "set_aside",
    "unmade_if_refused",
    "without_budgets",
    "write_config",
]

PROBE = b"x" * 65_536
"""More than a full disk takes; the files of a start are smaller."""
PROBE_PREFIX = ".writable-"
BUDGETS = ("max_agent_steps", "max_updates", "max_minutes")


def make_run_dir(paths: RunPaths) -> tuple[Path, ...]:
    """Create the folder, for this user only; which folders were not there before, deepest first."""
    try:
        made = tuple(path for path in (paths.root, *paths.root.parents) if not path.exists())
        paths.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        _probe(paths.root)
    except OSError as error:
        raise ConfigError(
            f"cannot write to the run folder {paths.root}: {error.strerror}; "
            "choose another --runs-dir"
        ) from error
    return made


@contextmanager
def unmade_if_refused(paths: RunPaths, made: Sequence[Path]) -> Iterator[None]:
    """A start that is refused leaves none of the folders that `make_run_dir` has just made for it.

    Under the lock of the run: a launcher that waits for it looks for the folder again.
    """
    try:
        yield
    except MarioError:
        if paths.root in made:
            log_file = paths.process_log("launcher-0")
            # By name, and only what is empty then: nothing else is ours to remove.
            with contextlib.suppress(OSError):
                log_file.unlink(missing_ok=True)
                log_file.parent.rmdir()
                paths.lock.unlink()
                for folder in made:
                    folder.rmdir()
        raise


def _probe(folder: Path) -> None:
    """Write a file of a new name: one that exists may be a link to anything."""
    descriptor, name = tempfile.mkstemp(prefix=PROBE_PREFIX, dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(PROBE)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def locked(paths: RunPaths) -> Iterator[None]:
    """Hold the run; a second launcher is refused at once and told who holds it."""
    name = repr(paths.root.name)
    busy = f"run {name} is in use by process {{pid}}; stop it or choose another --run"
    with held_lock(paths.lock, busy=busy):
        yield


def set_aside(paths: RunPaths) -> Path:
    """Move an existing run out of the way for `--fresh`; returns where it went."""
    target = _free_name(paths.root, time.strftime("%Y%m%d-%H%M%S"))
    try:
        paths.root.rename(target)
    except OSError as error:
        raise ConfigError(
            f"cannot move {paths.root} to {target}: {error.strerror}; choose another --run"
        ) from error
    return target


def _free_name(root: Path, stamp: str) -> Path:
    """One that nothing has yet, also when a run is set aside twice within a second."""
    target = root.with_name(f"{root.name}.before-{stamp}")
    number = 1
    while os.path.lexists(target):
        number += 1
        target = root.with_name(f"{root.name}.before-{stamp}-{number}")
    return target


def without_budgets(settings: Settings) -> Settings:
    """Budgets belong to one start: a run that goes on has the ones of its new command line."""
    none = {name: getattr(RunSettings(), name) for name in BUDGETS}
    return replace(settings, run=replace(settings.run, **none))
