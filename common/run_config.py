"""The file config.json of a run: who starts the run writes it, everybody may read it."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import time
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from common.atomic_files import write_atomic
from common.config import Settings
from common.run_paths import RunPaths
from common.settings_files import settings_to_dict

ROOT = Path(__file__).resolve().parent.parent
CODE = ("actor", "common", "launch", "learner", "replay_server", "pyproject.toml", "setup.py")
"""What decides how a run goes: changed documents and tests do not."""
VERSIONED = ("warpzone", "torch", "numpy", "pyzmq", "gymnasium", "nes-py", "gym-super-mario-bros")


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


def with_absolute_folder(settings: Settings, paths: RunPaths) -> Settings:
    """So that the file serves from any folder."""
    return replace(settings, run=replace(settings.run, runs_dir=str(paths.root.parent)))


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


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
