"""Pages: what the rings took in between two moments, one file each, so nothing is written twice.

A page holds the raw rows of the rings; blocks never change once they are stored, so it can be
written while others are added. A page whose slots were taken again meanwhile is not whole, and the
writer is told.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import torch
from torch import Tensor

from common.errors import CheckpointCorrupt
from common.replay_sizes import BYTE_COLUMNS
from common.saved_replay import PageFile
from replay_server.rings import ring_parts
from replay_server.storage import BlockStorage, StorageLayout

CHUNK_BYTES: Final = 4 << 20
"""Between two chunks others may have the interpreter."""


class PageOverwritten(Exception):
    """The buffer turned over faster than the disk could take it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """The slots of consecutive blocks."""

    first_generation: int
    end_generation: int
    """One beyond the last."""
    step_slot: int
    steps: int
    frame_slot: int
    frames: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(PageFile):
    """A file, and the slots that its rows came from."""

    stretch: Stretch
    byte_columns: int = len(BYTE_COLUMNS)
    """How many of them its rows have; there were fewer once."""


def stretch_since(layout: StorageLayout, storage: BlockStorage, generation: int) -> Stretch:
    """The blocks from `generation` on that the layout still has."""
    oldest = layout.next_generation - len(layout.blocks)
    first = max(generation, oldest)
    blocks = layout.blocks[first - oldest :]
    steps, frames = sum(b[1] for b in blocks), sum(b[2] for b in blocks)
    return Stretch(
        first_generation=first,
        end_generation=layout.next_generation,
        step_slot=(layout.next_step_slot - steps) % storage.sizes.steps,
        steps=steps,
        frame_slot=(layout.next_frame_slot - frames) % storage.sizes.frames,
        frames=frames,
    )


def write_page(path: Path, storage: BlockStorage, stretch: Stretch) -> Page:
    """Write and sync a new file; raises PageOverwritten when a block was evicted meanwhile."""
    digest, size = hashlib.sha256(), 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        for chunk in _chunks(storage, stretch, len(BYTE_COLUMNS)):
            data = _bytes_of(chunk.contiguous().cpu())
            digest.update(data)
            _write_all(file, data)
            size += len(data)
        os.fsync(file.fileno())
    if storage.oldest_generation > stretch.first_generation:
        raise PageOverwritten(path.name)
    return Page(name=path.name, size_bytes=size, sha256=digest.hexdigest(), stretch=stretch)


def read_page(path: Path, page: Page, storage: BlockStorage) -> None:
    """Put the rows back into the slots that they came from; the page has been checked."""
    with path.open("rb") as file:
        for chunk in _chunks(storage, page.stretch, page.byte_columns):
            rows = torch.empty(chunk.shape, dtype=chunk.dtype)
            data = _bytes_of(rows)
            if file.readinto(data) != len(data):
                raise CheckpointCorrupt(f"{path}: ends early")
            chunk.copy_(rows)


def _chunks(storage: BlockStorage, stretch: Stretch, byte_columns: int) -> Iterator[Tensor]:
    """Views of the rings, a few megabytes each, in the order of the file."""
    columns = storage.ring_columns(byte_columns)
    for ring in columns.values():
        yield from _parts_in_chunks(ring, stretch.step_slot, stretch.steps)
    yield from _parts_in_chunks(storage.frames, stretch.frame_slot, stretch.frames)


def _parts_in_chunks(ring: Tensor, first: int, length: int) -> Iterator[Tensor]:
    row_bytes = ring[:1].numel() * ring.element_size()
    for part, _ in ring_parts(ring, first, length):
        yield from torch.split(part, max(CHUNK_BYTES // row_bytes, 1))


def _bytes_of(rows: Tensor) -> memoryview[int]:
    """The memory of a contiguous CPU tensor."""
    return rows.view(torch.uint8).numpy().data.cast("B")


def _write_all(file: BinaryIO, data: memoryview) -> None:
    while data:
        data = data[file.write(data) :]
