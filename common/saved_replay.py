"""Saved replays on disk: where cuts and their pages lie, and whether they are whole.

`replay/cuts/NAME/` belongs to the checkpoint NAME and names the files in `replay/pages/` that it
needs. What is in them is the business of the replay server (`replay_server/cut_files.py`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from common.abandoned import name_before, set_aside_in
from common.checkpoint_files import (
    FILE_NAME,
    NUMBERED_NAME,
    STATE_NAME,
    list_numbered,
    load_state,
    verify_checkpoint,
)
from common.errors import CheckpointCorrupt
from common.leftovers import find_leftovers

TENSORS_NAME: Final = "priorities.safetensors"
CUT_FILES: Final = (STATE_NAME, TENSORS_NAME)
INCOMPLETE = "a cut of the replay server is incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file of rows that a cut needs."""

    name: str
    size_bytes: int
    sha256: str


def cuts_folder(root: Path) -> Path:
    """Of the folder `replay` of a run."""
    return root / "cuts"


def pages_folder(root: Path) -> Path:
    return root / "pages"


def cut_names(root: Path) -> list[str]:
    """Newest first."""
    return [path.name for path in list_numbered(cuts_folder(root))]


def cut_wanted(resume: Path | None, checkpoints: Path) -> str:
    """The name of the checkpoint that a cut must belong to, or `none`: other runs' are not ours."""
    if resume is None or resume.parent.resolve() != checkpoints.resolve():
        return "none"
    is_ours = NUMBERED_NAME.fullmatch(resume.name) or name_before(resume.name)
    return resume.name if is_ours else "none"


def cut_candidates(root: Path, wanted: str) -> list[str]:
    """Cuts that may be taken over for a checkpoint, or `auto`, or `none`; the best one first.

    With a checkpoint that was abandoned its cut comes first, which was abandoned with it.
    """
    if wanted in ("", "none"):
        return []
    if wanted == "auto":
        return cut_names(root)
    number = name_before(wanted)
    aside = [path.name for path in set_aside_in(cuts_folder(root))] if number else []
    with_it = [name for name in aside if name_before(name) == number]
    return with_it + [name for name in cut_names(root) if name <= (number or wanted)]


def saved_capacity(root: Path, wanted: str) -> int:
    """Items of the buffer that the wanted cut came from, or 0 when it does not say.

    Memory may be free in other amounts now; a buffer of another size could not take it over.
    """
    for name in cut_candidates(root, wanted):
        try:
            state = load_state(cuts_folder(root) / name, CUT_FILES)
            return int(str(state["capacity_items"]))
        except (CheckpointCorrupt, KeyError, ValueError):
            continue
    return 0


def page_path(root: Path, name: str) -> Path:
    if not FILE_NAME.fullmatch(name) or ".." in name:
        raise CheckpointCorrupt(f"a cut names the page {name!r}")
    return pages_folder(root) / name


def page_files(state: Mapping[str, Any]) -> list[PageFile]:
    """What the state of a cut says of its pages."""
    try:
        return [
            PageFile(
                name=str(page["name"]),
                size_bytes=int(page["size_bytes"]),
                sha256=str(page["sha256"]),
            )
            for page in state["pages"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointCorrupt(f"{INCOMPLETE}: {error!r}") from error


def check_page(path: Path, page: PageFile) -> None:
    """Read it once, before any of it is used."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointCorrupt(f"{path}: cannot be read: {error.strerror}") from error
    if (size, digest) != (page.size_bytes, page.sha256):
        raise CheckpointCorrupt(f"{path}: expected {page.size_bytes} bytes with another checksum")


def check_cut(root: Path, name: str) -> None:
    """Every file that it consists of, against its hash; raises CheckpointCorrupt."""
    folder = cuts_folder(root) / name
    verify_checkpoint(folder, CUT_FILES)
    for page in page_files(load_state(folder, CUT_FILES)):
        check_page(page_path(root, page.name), page)


def named_pages(root: Path) -> set[str]:
    """Pages that some cut needs; raises CheckpointCorrupt when one of the cuts cannot say."""
    cuts = cuts_folder(root)
    folders = [*(cuts / name for name in cut_names(root)), *set_aside_in(cuts)]
    return {page.name for one in folders for page in page_files(load_state(one, CUT_FILES))}


def cut_leftovers(root: Path) -> list[Path]:
    """What writers left that were killed: nothing names it."""
    return find_leftovers(cuts_folder(root))
