"""Small valid checkpoints for tests, without a learner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from common.checkpoint_files import (
    AVERAGE_NAME,
    MANIFEST_NAME,
    STATE_NAME,
    FileEntry,
    Manifest,
    checkpoint_name,
    encode_json,
    encode_manifest,
    sha256_hex,
)


def write_small_checkpoint(folder: Path, agent_steps: int, name: str | None = None) -> Path:
    """A checkpoint below the folder `folder`, under its number unless `name` says otherwise."""
    path = folder / (name or checkpoint_name(agent_steps))
    path.mkdir(parents=True)
    files = {
        f"{stem}.safetensors": save({"weight": torch.full((4,), float(agent_steps))})
        for stem in ("network", "target", "optimizer")
    }
    files[STATE_NAME] = encode_json({"run": {"agent_steps": agent_steps}})
    for file_name, content in files.items():
        (path / file_name).write_bytes(content)
    seal_checkpoint(path, agent_steps)
    return path


def write_playable_checkpoint(
    folder: Path, agent_steps: int, network: Mapping[str, Tensor], *, updates: int
) -> Path:
    """As a run writes it, with an optimizer that nobody will look at."""
    path = write_small_checkpoint(folder, agent_steps)
    (path / "network.safetensors").write_bytes(save(dict(network)))
    (path / STATE_NAME).write_bytes(encode_json({"learner": {"updates": updates}, "run": {}}))
    seal_checkpoint(path, agent_steps)
    return path


def add_average(path: Path, agent_steps: int, average: Mapping[str, Tensor]) -> None:
    """As a run writes it that keeps a mean of its weights."""
    (path / AVERAGE_NAME).write_bytes(save(dict(average)))
    seal_checkpoint(path, agent_steps)


def seal_checkpoint(path: Path, agent_steps: int) -> None:
    """Write the manifest that fits the files as they are now."""
    entries = {}
    for file in path.iterdir():
        if file.name != MANIFEST_NAME:
            content = file.read_bytes()
            entries[file.name] = FileEntry(size_bytes=len(content), sha256=sha256_hex(content))
    manifest = Manifest(agent_steps=agent_steps, created_unix_s=1.5, files=entries)
    (path / MANIFEST_NAME).write_bytes(encode_manifest(manifest))


def flip_byte(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0x01
    path.write_bytes(bytes(content))


def damage(checkpoint: Path) -> None:
    flip_byte(checkpoint / "network.safetensors", -1)
