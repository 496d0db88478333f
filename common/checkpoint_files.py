"""The files of a checkpoint and how they are verified; torch is imported only to read tensors.

A checkpoint is a directory `checkpoints/<agent steps, 11 digits>` with `manifest.json`, written
last, which holds name, size and SHA-256 of every other file and a hash of itself. Everything is
checked before anything is used; files that the manifest does not name are never opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from common.atomic_files import write_synced
from common.errors import CheckpointCorrupt

if TYPE_CHECKING:
    from torch import Tensor

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | Mapping[str, JsonValue] | None"
JsonObject: TypeAlias = Mapping[str, JsonValue]

WeightsChoice = Literal["average", "online"]

SCHEMA_VERSION = 1
MANIFEST_NAME = "manifest.json"
STATE_NAME = "state.json"
TENSOR_SUFFIX = ".safetensors"
AVERAGE_NAME = "average.safetensors"
"""The mean of the weights over many updates, in checkpoints of runs that keep one."""
NETWORK_NAME = "network.safetensors"
PLAYABLE_FILES = (STATE_NAME, NETWORK_NAME)
"""Enough to play; what is published as a model has no more."""
REQUIRED_FILES = (*PLAYABLE_FILES, "target.safetensors", "optimizer.safetensors")
"""What a run needs to go on."""
MAX_MANIFEST_BYTES = 1 << 20
MAX_FILE_BYTES = 8 << 30
MAX_FILES = 64
MAX_SHOWN_CHARS = 200
FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
NUMBERED_NAME = re.compile(r"[0-9]{11}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    agent_steps: int
    created_unix_s: float
    files: Mapping[str, FileEntry]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckpointData:
    """A verified checkpoint in memory. Tensors are on the CPU, by file stem and tensor name."""

    path: Path
    agent_steps: int
    state: JsonObject
    tensors: Mapping[str, Mapping[str, Tensor]]

    def weights(self, choice: WeightsChoice = "average") -> Mapping[str, Tensor]:
        """To play with: the average where there is one, or the network as it is trained."""
        network = self.tensors[NETWORK_NAME.removesuffix(TENSOR_SUFFIX)]
        average = self.tensors.get(AVERAGE_NAME.removesuffix(TENSOR_SUFFIX), network)
        return average if choice == "average" else network

    @property
    def updates(self) -> int:
        """That made the network: the version of its weights."""
        return updates_of(self.state)


def updates_of(state: JsonObject) -> int:
    """The updates that a checkpoint's counters tell of; 0 where they do not."""
    learner = state.get("learner")
    updates = learner.get("updates") if isinstance(learner, dict) else None
    return updates if isinstance(updates, int) else 0


def checkpoint_name(agent_steps: int) -> str:
    return f"{agent_steps:011d}"


def encode_json(value: JsonValue) -> bytes:
    """The one encoding of a value: sorted keys, no spaces; NaN is refused."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def encode_manifest(manifest: Manifest) -> bytes:
    files: JsonObject = {
        name: {"bytes": entry.size_bytes, "sha256": entry.sha256}
        for name, entry in manifest.files.items()
    }
    body: JsonObject = {
        "schema": SCHEMA_VERSION,
        "agent_steps": manifest.agent_steps,
        "created_unix_s": manifest.created_unix_s,
        "files": files,
    }
    return encode_json({"body": body, "body_sha256": sha256_hex(encode_json(body))})


def sha256_hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def list_numbered(checkpoints_dir: Path) -> list[Path]:
    """Numbered checkpoints, newest first, verified or not; ordered by steps, never by clock."""
    if not checkpoints_dir.is_dir():
        return []
    found = [path for path in checkpoints_dir.iterdir() if NUMBERED_NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: path.name, reverse=True)


def read_manifest(path: Path, required: Sequence[str] = REQUIRED_FILES) -> Manifest:
    """Read and check the manifest of the checkpoint directory `path`; no other file is opened."""
    if path.is_symlink() or not path.is_dir():
        raise _corrupt(path, "checkpoint", "a directory that is no link", "something else")
    content = _read_file(path / MANIFEST_NAME, MAX_MANIFEST_BYTES)
    try:
        manifest = _decode_manifest(path, content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as exc:
        raise CheckpointCorrupt(f"{path}: manifest cannot be read: {exc!r}") from exc
    missing = sorted(set(required) - manifest.files.keys())
    _require(path, "files missing from the manifest", [], missing)
    if NUMBERED_NAME.fullmatch(path.name) and int(path.name) != manifest.agent_steps:
        raise _corrupt(path, "agent steps", path.name, manifest.agent_steps)
    return manifest


def verify_checkpoint(path: Path, required: Sequence[str] = REQUIRED_FILES) -> Manifest:
    """Check every file against the manifest without loading tensors; raises CheckpointCorrupt."""
    manifest = read_manifest(path, required)
    for name, entry in manifest.files.items():
        with _open_file(path / name) as file:
            _require(path, f"size of {name}", entry.size_bytes, os.fstat(file.fileno()).st_size)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            _require(path, f"sha256 of {name}", entry.sha256, digest)
    return manifest


def load_checkpoint(path: Path, required: Sequence[str] = REQUIRED_FILES) -> CheckpointData:
    """Read a checkpoint whole; the bytes that are parsed are the bytes that were hashed."""
    manifest = read_manifest(path, required)
    state: JsonObject = {}
    tensors: dict[str, Mapping[str, Tensor]] = {}
    for name, entry in manifest.files.items():
        content = _read_file(path / name, entry.size_bytes)
        _require(path, f"size of {name}", entry.size_bytes, len(content))
        _require(path, f"sha256 of {name}", entry.sha256, sha256_hex(content))
        if name == STATE_NAME:
            state = _decode_state(path, content)
        elif name.endswith(TENSOR_SUFFIX):
            tensors[name.removesuffix(TENSOR_SUFFIX)] = _decode_tensors(path / name, content)
    return CheckpointData(path=path, agent_steps=manifest.agent_steps, state=state, tensors=tensors)


def write_files(folder: Path, files: Mapping[str, bytes], agent_steps: int) -> None:
    """The files of a checkpoint and, last, the manifest that makes them one; each synced."""
    for name, content in files.items():
        write_synced(folder / name, content)
    entries = {
        name: FileEntry(size_bytes=len(content), sha256=sha256_hex(content))
        for name, content in files.items()
    }
    manifest = Manifest(agent_steps=agent_steps, created_unix_s=time.time(), files=entries)
    write_synced(folder / MANIFEST_NAME, encode_manifest(manifest))


def load_state(path: Path, required: Sequence[str] = REQUIRED_FILES) -> JsonObject:
    """The counters of a checkpoint, without its tensors."""
    entry = read_manifest(path, required).files[STATE_NAME]
    content = _read_file(path / STATE_NAME, entry.size_bytes)
    _require(path, f"sha256 of {STATE_NAME}", entry.sha256, sha256_hex(content))
    return _decode_state(path, content)


def _decode_manifest(path: Path, content: bytes) -> Manifest:
    outer = json.loads(content)
    # Any other spelling of the same values is damage too: each byte of the file is accounted for.
    _require(path, "encoding of the manifest", encode_json(outer), content)
    body = outer["body"]
    _require(path, "schema", SCHEMA_VERSION, body["schema"])
    _require(path, "sha256 of the manifest", sha256_hex(encode_json(body)), outer["body_sha256"])
    files = {name: _decode_entry(path, name, entry) for name, entry in body["files"].items()}
    if len(files) > MAX_FILES:
        raise _corrupt(path, "number of files", f"at most {MAX_FILES}", len(files))
    return Manifest(
        agent_steps=int(body["agent_steps"]),
        created_unix_s=float(body["created_unix_s"]),
        files=files,
    )


def _decode_entry(path: Path, name: str, entry: Mapping[str, object]) -> FileEntry:
    size, digest = entry["bytes"], entry["sha256"]
    if not FILE_NAME.fullmatch(name) or ".." in name or name == MANIFEST_NAME:
        raise _corrupt(path, "file name", "a plain name", name)
    if type(size) is not int or not 0 <= size <= MAX_FILE_BYTES or not isinstance(digest, str):
        raise _corrupt(path, f"entry of {name}", "a size and a hash", dict(entry))
    return FileEntry(size_bytes=size, sha256=digest)


def _decode_state(path: Path, content: bytes) -> JsonObject:
    try:
        state = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise CheckpointCorrupt(f"{path / STATE_NAME}: not JSON: {exc}") from exc
    if not isinstance(state, dict):
        raise _corrupt(path, STATE_NAME, "an object", type(state).__name__)
    return state


def _decode_tensors(path: Path, content: bytes) -> Mapping[str, Tensor]:
    from safetensors import SafetensorError  # noqa: PLC0415 # launch verifies without torch
    from safetensors.torch import load  # noqa: PLC0415

    try:
        return load(content)
    except (SafetensorError, ValueError, RuntimeError) as exc:
        raise CheckpointCorrupt(f"{path}: not a safetensors file: {exc}") from exc


@contextlib.contextmanager
def _open_file(path: Path) -> Iterator[BufferedReader]:
    """Open a regular file; links are refused and a pipe cannot make us wait."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as exc:
        raise CheckpointCorrupt(f"{path}: cannot be opened: {exc.strerror}") from exc
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _corrupt(path, "type", "a regular file", "something else")
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file
        except OSError as exc:
            raise CheckpointCorrupt(f"{path}: cannot be read: {exc.strerror}") from exc


def _read_file(path: Path, max_bytes: int) -> bytes:
    """At most one byte more than allowed is read, so that a grown file is seen, not swallowed."""
    with _open_file(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise _corrupt(path, "size", f"at most {max_bytes} bytes", "more")
    return content


def _require(path: Path, what: str, expected: object, got: object) -> None:
    if expected != got:
        raise _corrupt(path, what, expected, got)


def _corrupt(path: Path, what: str, expected: object, got: object) -> CheckpointCorrupt:
    shown_expected, shown_got = str(expected)[:MAX_SHOWN_CHARS], str(got)[:MAX_SHOWN_CHARS]
    return CheckpointCorrupt(f"{path}: {what}: expected {shown_expected}, got {shown_got}")
