"""The page itself: files of the package, read once; no address ever becomes a path."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final

TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    content: bytes
    media_type: str
    tag: str
    """Changes with the content, so that browsers ask again and get nothing new."""


def load_page() -> dict[str, PageFile]:
    """By the address under which each is served."""
    found: dict[str, PageFile] = {}
    _collect(resources.files("launch.control_room") / "assets", "/", found)
    found["/"] = found.pop("/index.html")
    return found


def _collect(folder: Traversable, prefix: str, found: dict[str, PageFile]) -> None:
    for entry in folder.iterdir():
        if entry.is_dir():
            _collect(entry, f"{prefix}{entry.name}/", found)
            continue
        suffix = entry.name[entry.name.rfind(".") :]
        if suffix in TYPES:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            found[prefix + entry.name] = PageFile(content, TYPES[suffix], tag)
