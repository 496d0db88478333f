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


def git_commit() -> str | None:
    """The commit of the code that runs, if it runs from a checkout."""
    git = shutil.which("git")
    if git is None:
        return None
    root = Path(__file__).resolve().parent.parent
    result = subprocess.run(
        [git, "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return result.stdout.strip() or None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
