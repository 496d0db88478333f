"""The folder of a run: made, locked, described; old runs are moved aside, never deleted."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from common.atomic_files import write_atomic
from common.config import RunSettings, Settings
from common.errors import ConfigError, MarioError
from common.file_lock import held_lock
from common.run_paths import RunPaths
from common.settings_files import settings_to_dict

PROBE = b"x" * 65_536
"""More than a full disk takes; the files of a start are smaller."""
PROBE_PREFIX = ".writable-"
BUDGETS = ("max_agent_steps", "max_updates", "max_minutes")
ROOT = Path(__file__).resolve().parent.parent
CODE = ("actor", "common", "launch", "learner", "replay_server", "pyproject.toml", "setup.py")
"""What decides how a run goes: changed documents and tests do not."""
VERSIONED = ("warpzone", "torch", "numpy", "pyzmq", "gymnasium", "nes-py", "gym-super-mario-bros")


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


def write_config(paths: RunPaths, settings: Settings) -> None:
    """The resolved settings and what they met: versions, commit, machine."""
    content = {
        "settings": settings_to_dict(settings),
        "versions": {name: _version(name) for name in VERSIONED}
        | {"python": platform.python_version()},
        "git_commit": git_commit(),
        "platform": platform.platform(),
        "created": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
    }
    write_atomic(paths.config, json.dumps(content, indent=2).encode() + b"\n")


def without_budgets(settings: Settings) -> Settings:
    """Budgets belong to one start: a run that goes on has the ones of its new command line."""
    none = {name: getattr(RunSettings(), name) for name in BUDGETS}
    return replace(settings, run=replace(settings.run, **none))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def git_commit(root: Path = ROOT) -> str | None:
    """The commit of the code that runs, if it runs from a checkout; `-dirty` if it is not quite it.

    New files count as changes, also those that were never added.
    """
    commit = _git(root, "rev-parse", "HEAD")
    if not commit:
        return None
    is_changed = _git(root, "--no-optional-locks", "status", "--porcelain", "--", *CODE)
    return f"{commit}-dirty" if is_changed else commit


def _git(root: Path, *words: str) -> str:
    """What git says; nothing where there is no git, or no repository."""
    git = shutil.which("git")
    if git is None:
        return ""
    result = subprocess.run(
        [git, "-C", str(root), *words], capture_output=True, text=True, check=False
    )
    return result.stdout.strip()
