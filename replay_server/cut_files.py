"""Cuts on disk: `replay/pages/*.bin` and `replay/cuts/NAME/`, whole or not at all.

A cut names its pages with their checksums; pages that no cut names any more are removed.
"""

from __future__ import annotations

import logging
import secrets
import shutil
from pathlib import Path
from typing import Final

from safetensors.torch import save

from common.abandoned import set_aside
from common.atomic_files import publish_directory, remove_directory, sync_directory
from common.checkpoint_files import (
    STATE_NAME,
    TENSOR_SUFFIX,
    CheckpointData,
    encode_json,
    load_checkpoint,
    write_files,
)
from common.errors import CheckpointCorrupt
from common.leftovers import temporary_checkpoint_name
from common.saved_replay import (
    CUT_FILES,
    TENSORS_NAME,
    check_page,
    cut_candidates,
    cut_leftovers,
    cut_names,
    cuts_folder,
    named_pages,
    page_path,
    pages_folder,
)
from replay_server.buffer import ReplayBuffer
from replay_server.cut import Cut, SavedCut, read_cut, require_same_shape
from replay_server.pages import Page, Stretch, read_page, stretch_since, write_page
from replay_server.storage import BlockStorage

log = logging.getLogger(__name__)

KEPT_CUTS: Final = 3


class CutFolder:
    """The folder `replay` of a run. One writer at a time."""

    def __init__(self, root: Path, storage: BlockStorage) -> None:
        self._root = root
        self._storage = storage
        self._pages: list[Page] = []
        """Of the newest cut, oldest first."""

    def write(self, cut: Cut) -> Path:
        """New blocks as a page, then the cut that names it."""
        for folder in (pages_folder(self._root), cuts_folder(self._root)):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        oldest = cut.layout.next_generation - len(cut.layout.blocks)
        pages = [page for page in self._pages if page.stretch.end_generation > oldest]
        since = pages[-1].stretch.end_generation if pages else oldest
        stretch = stretch_since(cut.layout, self._storage, since)
        new = [self._write_page(stretch)] if stretch.steps else []
        try:
            path = self._publish(cut, pages + new)
        except BaseException:
            self._remove_nameless_pages()
            raise
        self._pages = pages + new
        self.forget_after(cut.name)
        self._prune()
        return path

    def restore(self, name: str, buffer: ReplayBuffer) -> SavedCut:
        """Put a cut into an empty buffer of the same shape; everything is checked before."""
        data = self._load(name)
        saved = read_cut(data.state, data.tensors[TENSORS_NAME.removesuffix(TENSOR_SUFFIX)])
        require_same_shape(saved, buffer)
        for page in saved.pages:
            check_page(page_path(self._root, page.name), page)
        for page in saved.pages:
            read_page(page_path(self._root, page.name), page, self._storage)
        buffer.restore(saved.layout, saved.quanta, saved.random_state)
        self._pages = saved.pages
        return saved

    def forget_after(self, name: str) -> None:
        """Rename cuts of a future that was given up: else they would be taken for the newest."""
        for newer in self.names():
            if newer > name:
                aside = set_aside(cuts_folder(self._root) / newer)
                log.info("saved replay set aside", extra={"cut": aside, "for": name or "none"})

    def remove_leftovers(self) -> None:
        for path in cut_leftovers(self._root):
            shutil.rmtree(path, ignore_errors=True)

    def candidates(self, wanted: str) -> list[str]:
        """What may be restored for a checkpoint, best first."""
        return cut_candidates(self._root, wanted)

    def names(self) -> list[str]:
        """Newest first."""
        return cut_names(self._root)

    def _load(self, name: str) -> CheckpointData:
        return load_checkpoint(cuts_folder(self._root) / name, CUT_FILES)

    def _write_page(self, stretch: Stretch) -> Page:
        name = f"{stretch.first_generation:011d}-{secrets.token_hex(4)}.bin"
        path = page_path(self._root, name)
        try:
            page = write_page(path, self._storage, stretch)
            sync_directory(path.parent)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return page

    def _publish(self, cut: Cut, pages: list[Page]) -> Path:
        final = cuts_folder(self._root) / cut.name
        temporary = final.with_name(temporary_checkpoint_name())
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
        for name in self.names()[KEPT_CUTS:]:
            remove_directory(cuts_folder(self._root) / name)
        self._remove_nameless_pages()

    def _remove_nameless_pages(self) -> None:
        try:
            named = named_pages(self._root)
        except CheckpointCorrupt as error:
            # Whatever it named may be wanted by whoever mends it.
            log.warning("a cut cannot be read; pages are kept", extra={"error": str(error)})
            return
        for file in pages_folder(self._root).iterdir():
            if file.name not in named:
                file.unlink(missing_ok=True)
