"""Cuts on disk: `replay/pages/*.bin` and `replay/cuts/NAME/`, whole or not at all.

A cut names its pages with their checksums; pages that no cut names any more are removed.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from pathlib import Path
from typing import Final

from safetensors.torch import save

from common.atomic_files import (
    TEMPORARY_PREFIX,
    publish_directory,
    remove_directory,
    sync_directory,
)
from common.checkpoint_files import (
    FILE_NAME,
    STATE_NAME,
    TENSOR_SUFFIX,
    encode_json,
    list_numbered,
    load_checkpoint,
    load_state,
    write_files,
)
from common.errors import CheckpointCorrupt
from replay_server.buffer import ReplayBuffer
from replay_server.cut import Cut, SavedCut, read_state, require_same_shape
from replay_server.pages import Page, Stretch, check_page, read_page, stretch_since, write_page
from replay_server.storage import BlockStorage

log = logging.getLogger(__name__)

TENSORS_NAME: Final = "priorities.safetensors"
REQUIRED: Final = (STATE_NAME, TENSORS_NAME)
KEPT_CUTS: Final = 3


class CutFolder:
    """The folder `replay` of a run. One writer at a time."""

    def __init__(self, root: Path, storage: BlockStorage) -> None:
        self._pages_dir = root / "pages"
        self._cuts_dir = root / "cuts"
        self._storage = storage
        self._pages: list[Page] = []
        """Of the newest cut, oldest first."""

    def write(self, cut: Cut) -> Path:
        """New blocks as a page, then the cut that names it."""
        for folder in (self._pages_dir, self._cuts_dir):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        oldest = cut.layout.next_generation - len(cut.layout.blocks)
        pages = [page for page in self._pages if page.stretch.end_generation > oldest]
        since = pages[-1].stretch.end_generation if pages else oldest
        stretch = stretch_since(cut.layout, self._storage, since)
        if stretch.steps:
            pages.append(self._write_page(stretch))
        path = self._publish(cut, pages)
        self._pages = pages
        self._prune()
        return path

    def restore(self, name: str, buffer: ReplayBuffer) -> SavedCut:
        """Put a cut into an empty buffer of the same shape; everything is checked before."""
        data = load_checkpoint(self._cuts_dir / name, REQUIRED)
        saved = read_state(data.state)
        require_same_shape(saved, buffer)
        for page in saved.pages:
            check_page(self._page_path(page), page)
        for page in saved.pages:
            read_page(self._page_path(page), page, self._storage)
        tensors = data.tensors[TENSORS_NAME.removesuffix(TENSOR_SUFFIX)]
        buffer.restore(saved.layout, tensors["quanta"], tensors["random_state"])
        self._pages = saved.pages
        for newer in self.names():
            if newer > name:
                # A future that was given up; kept, it would be taken for the newest.
                remove_directory(self._cuts_dir / newer)
        return saved

    def names(self) -> list[str]:
        """Newest first."""
        return [path.name for path in list_numbered(self._cuts_dir)]

    def _page_path(self, page: Page) -> Path:
        if not FILE_NAME.fullmatch(page.name) or ".." in page.name:
            raise CheckpointCorrupt(f"a cut names the page {page.name!r}")
        return self._pages_dir / page.name

    def _write_page(self, stretch: Stretch) -> Page:
        name = f"{stretch.first_generation:011d}-{secrets.token_hex(4)}.bin"
        try:
            page = write_page(self._pages_dir / name, self._storage, stretch)
        except BaseException:
            (self._pages_dir / name).unlink(missing_ok=True)
            raise
        sync_directory(self._pages_dir)
        return page

    def _publish(self, cut: Cut, pages: list[Page]) -> Path:
        final = self._cuts_dir / cut.name
        temporary = self._cuts_dir / f"{TEMPORARY_PREFIX}cut-{os.getpid()}-{secrets.token_hex(4)}"
        files = {
            STATE_NAME: encode_json(cut.to_state(pages)),
            TENSORS_NAME: save({"quanta": cut.quanta, "random_state": cut.random_state}),
        }
        try:
            temporary.mkdir(mode=0o700)
            write_files(temporary, files, cut.agent_steps)
            if final.exists():
                remove_directory(final)
            publish_directory(temporary, final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        return final

    def _prune(self) -> None:
        """Only what the newest cuts name is kept."""
        kept, old = self.names()[:KEPT_CUTS], self.names()[KEPT_CUTS:]
        for name in old:
            remove_directory(self._cuts_dir / name)
        named: set[str] = set()
        for name in kept:
            try:
                saved = read_state(load_state(self._cuts_dir / name, REQUIRED))
            except CheckpointCorrupt as error:
                # Whatever it named may be wanted by whoever mends it.
                log.warning("a cut cannot be read; pages are kept", extra={"error": str(error)})
                return
            named |= {page.name for page in saved.pages}
        for file in self._pages_dir.iterdir():
            if file.name not in named:
                file.unlink(missing_ok=True)
