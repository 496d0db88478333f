"""What a run left behind when it went back: renamed, never deleted, and found again."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

PREFIX = "abandoned-"
NAME = re.compile(re.escape(PREFIX) + r"(?P<numbered>[0-9]{11})-[0-9a-f]+")


def set_aside(path: Path) -> Path:
    """The new path of a checkpoint or a saved replay, beside the old one."""
    return path.rename(path.with_name(f"{PREFIX}{path.name}-{secrets.token_hex(4)}"))


def set_aside_in(folder: Path) -> list[Path]:
    """Those that came last first."""
    found = folder.glob(f"{PREFIX}*")
    return sorted(found, key=lambda path: (path.lstat().st_mtime_ns, path.name), reverse=True)


def name_before(name: str) -> str | None:
    """The numbered name that it had, or None for anything that was not set aside."""
    match = NAME.fullmatch(name)
    return match["numbered"] if match else None
