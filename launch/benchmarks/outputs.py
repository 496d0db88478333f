"""Where figures go, looked at before anything is measured: minutes later is too late to hear of it.

Folders that are not there are made; files are left as they are.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path

from common.errors import ConfigError
from common.extras import install_command
from launch.plot_style import SUFFIXES


def require_folder(folder: Path) -> None:
    """That files can be made in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise ConfigError(f"cannot write to the folder {folder}: {error.strerror}") from error


def require_picture(path: Path) -> None:
    """That a picture can be drawn here, and written there."""
    if path.suffix not in SUFFIXES:
        raise ConfigError(f"--picture must end in {' or '.join(SUFFIXES)}, got {str(path)!r}")
    if find_spec("matplotlib") is None:
        raise ConfigError(f"--picture needs matplotlib; run: {install_command('plot')}")
    require_folder(path.parent)
    if not path.exists():
        return
    try:
        # For appending: an older picture stays until there is a new one.
        with path.open("ab"):
            pass
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
