"""References of the extra `bench`: loaded where they are installed, else a note that says how."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from common.extras import install_command


def load_reference(module: str, package: str) -> tuple[Any, tuple[str, ...]]:
    """The module, or None and the note that says what to install."""
    try:
        return import_module(module), ()
    except ImportError:
        return None, (missing_note(package),)


def missing_note(package: str, extra: str = "bench") -> str:
    return f"{package} is not measured: it is not installed; run: {install_command(extra)}"
