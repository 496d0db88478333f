from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from common.checkpoint_files import (
    MANIFEST_NAME,
    encode_json,
    list_numbered,
    load_checkpoint,
    sha256_hex,
    verify_checkpoint,
)
from common.errors import CheckpointCorrupt
from tests.checkpoint_factory import flip_byte, seal_checkpoint, write_small_checkpoint

READERS = (verify_checkpoint, load_checkpoint)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return write_small_checkpoint(tmp_path, 12_000)


def rewrite_manifest(checkpoint: Path, change: dict[str, Any]) -> None:
    """Change the manifest's body and seal it with a correct hash: a forger's manifest."""
    path = checkpoint / MANIFEST_NAME
    body = json.loads(path.read_bytes())["body"] | change
    path.write_bytes(encode_json({"body": body, "body_sha256": sha256_hex(encode_json(body))}))


def assert_refused(checkpoint: Path, text: str) -> None:
    for read in READERS:
        with pytest.raises(CheckpointCorrupt, match=text):
            read(checkpoint)


def test_valid_checkpoint_is_read_whole(checkpoint: Path) -> None:
    manifest, data = verify_checkpoint(checkpoint), load_checkpoint(checkpoint)

    assert manifest.agent_steps == data.agent_steps == 12_000
    assert data.state == {"run": {"agent_steps": 12_000}}
    assert torch.equal(data.tensors["network"]["weight"], torch.full((4,), 12_000.0))
    assert set(data.tensors) == {"network", "target", "optimizer"}


def test_every_flipped_byte_is_detected(checkpoint: Path) -> None:
    for file in sorted(checkpoint.iterdir()):
        size = file.stat().st_size
        for offset in {*range(0, size, 7), size - 1}:
            flip_byte(file, offset)
            for read in READERS:
                with pytest.raises(CheckpointCorrupt):
                    read(checkpoint)
            flip_byte(file, offset)
    verify_checkpoint(checkpoint)


def test_every_truncation_is_detected(checkpoint: Path) -> None:
    for file in sorted(checkpoint.iterdir()):
        content = file.read_bytes()
        for length in {0, 1, *range(2, len(content), 13), len(content) - 1}:
            file.write_bytes(content[:length])
            for read in READERS:
                with pytest.raises(CheckpointCorrupt):
                    read(checkpoint)
        file.write_bytes(content)
    verify_checkpoint(checkpoint)


def test_grown_file_is_detected(checkpoint: Path) -> None:
    for file in sorted(checkpoint.iterdir()):
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        for read in READERS:
            with pytest.raises(CheckpointCorrupt):
                read(checkpoint)
        file.write_bytes(content)


def test_error_names_file_expected_and_got(checkpoint: Path) -> None:
    (checkpoint / "state.json").write_bytes(b"{}")

    assert_refused(checkpoint, "size of state.json: expected 29, got 2")


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "network.safetensors"])
def test_missing_file_is_named(checkpoint: Path, name: str) -> None:
    (checkpoint / name).unlink()

    assert_refused(checkpoint, name)


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "target.safetensors"])
def test_links_folders_and_pipes_are_refused(checkpoint: Path, tmp_path: Path, name: str) -> None:
    original = (checkpoint / name).rename(tmp_path / "original")

    (checkpoint / name).symlink_to(original)
    assert_refused(checkpoint, name)
    (checkpoint / name).unlink()
    (checkpoint / name).mkdir()
    assert_refused(checkpoint, name)
    (checkpoint / name).rmdir()
    os.mkfifo(checkpoint / name)
    assert_refused(checkpoint, name)


def test_linked_checkpoint_directory_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(checkpoint)

    assert_refused(link, "no link")


@pytest.mark.parametrize(
    "name",
    ["../state.json", "/etc/passwd", "a/b", "..", ".", ".hidden", "", "manifest.json", "a..b"],
)
def test_manifest_may_only_name_plain_files(checkpoint: Path, name: str) -> None:
    body = json.loads((checkpoint / MANIFEST_NAME).read_bytes())["body"]
    files = body["files"] | {name: body["files"]["state.json"]}

    rewrite_manifest(checkpoint, {"files": files})

    assert_refused(checkpoint, "file name")


@pytest.mark.parametrize("size", [-1, 2**63, 1.5, True, "30", None])
def test_manifest_sizes_must_be_sane(checkpoint: Path, size: object) -> None:
    body = json.loads((checkpoint / MANIFEST_NAME).read_bytes())["body"]
    body["files"]["state.json"]["bytes"] = size

    rewrite_manifest(checkpoint, {"files": body["files"]})

    assert_refused(checkpoint, "entry of state.json|manifest cannot be read")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"schema": 2}, "schema: expected 1, got 2"),
        ({"files": {}}, "missing from the manifest"),
        ({"files": []}, "manifest cannot be read"),
        ({"agent_steps": 11_999}, "agent steps: expected 00000012000, got 11999"),
        ({"agent_steps": "many"}, "manifest cannot be read"),
        ({"created_unix_s": None}, "manifest cannot be read"),
    ],
)
def test_wrong_manifest_values_are_named(
    checkpoint: Path, change: dict[str, Any], text: str
) -> None:
    rewrite_manifest(checkpoint, change)

    assert_refused(checkpoint, text)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 100_000, b"{"])
def test_manifest_that_is_none_is_refused(checkpoint: Path, content: bytes) -> None:
    (checkpoint / MANIFEST_NAME).write_bytes(content)

    assert_refused(checkpoint, "manifest")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("network.safetensors", b"\xff" * 8 + b"{}"),
        ("network.safetensors", b"\x80\x04."),
        ("state.json", b"[]"),
        ("state.json", b"not json"),
    ],
)
def test_well_hashed_nonsense_is_refused_on_loading(
    checkpoint: Path, name: str, content: bytes
) -> None:
    (checkpoint / name).write_bytes(content)
    seal_checkpoint(checkpoint, 12_000)

    with pytest.raises(CheckpointCorrupt, match=name):
        load_checkpoint(checkpoint)


def test_unlisted_file_is_never_opened(checkpoint: Path) -> None:
    os.mkfifo(checkpoint / "extra.safetensors")

    assert "extra" not in load_checkpoint(checkpoint).tensors


def test_numbered_are_listed_newest_first_by_steps(tmp_path: Path) -> None:
    for steps in (5, 100_000, 300):
        write_small_checkpoint(tmp_path, steps)
    for name in (
        ".tmp-checkpoint-x-1-a",
        "best",
        "123",
        "00000000005.bak",
        "abandoned-00000000009",
    ):
        (tmp_path / name).mkdir()

    names = [path.name for path in list_numbered(tmp_path)]

    assert names == ["00000100000", "00000000300", "00000000005"]
    assert list_numbered(tmp_path / "nowhere") == []


def test_verification_does_not_import_torch() -> None:
    code = "import sys, common.checkpoint_files, common.resume; sys.exit('torch' in sys.modules)"

    root = Path(__file__).parents[3]
    result = subprocess.run([sys.executable, "-c", code], cwd=root, check=False, timeout=30)

    assert result.returncode == 0
