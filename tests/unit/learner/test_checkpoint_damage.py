"""Every way in which the files of a checkpoint can be wrong, seen from the run that goes on."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from common.checkpoint_files import encode_json, load_checkpoint, sha256_hex
from common.errors import CheckpointCorrupt, CheckpointMismatch
from common.resume import find_resume
from learner.checkpoint import checkpoint_of, restore_checkpoint, write_checkpoint
from tests.checkpoint_factory import flip_byte, seal_checkpoint
from tests.learner_factory import random_batch, tiny_learner

NETWORK = "network.safetensors"
Harm = Callable[[Path], object]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    learner = tiny_learner()
    learner.update(random_batch())
    for steps in (1, 2):
        write_checkpoint(folder / "checkpoints", checkpoint_of(learner, agent_steps=steps, run={}))
    return folder


@pytest.fixture
def newest(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "run")
    return tmp_path / "run" / "checkpoints" / "00000000002"


def body_with(**changes: object) -> Harm:
    """A manifest with other values and the right hash."""

    def harm(checkpoint: Path) -> None:
        path = checkpoint / "manifest.json"
        body = json.loads(path.read_bytes())["body"] | changes
        path.write_bytes(encode_json({"body": body, "body_sha256": sha256_hex(encode_json(body))}))

    return harm


def named(name: str) -> Harm:
    """A manifest that names a file outside of the checkpoint."""
    return body_with(files={name: {"bytes": 1, "sha256": "0"}})


def content_of(name: str, change: Callable[[bytes], bytes], *, sealed: bool = False) -> Harm:
    def harm(checkpoint: Path) -> None:
        path = checkpoint / name
        path.write_bytes(change(path.read_bytes()))
        if sealed:
            seal_checkpoint(checkpoint, 2)

    return harm


def tensors_with(change: Callable[[dict[str, Tensor]], object]) -> Harm:
    """Another network in a checkpoint whose sizes and hashes are right."""

    def harm(checkpoint: Path) -> None:
        tensors = load_file(checkpoint / NETWORK)
        change(tensors)
        save_file(tensors, checkpoint / NETWORK)
        seal_checkpoint(checkpoint, 2)

    return harm


def replace_by(make: Callable[[Path], object], name: str = NETWORK) -> Harm:
    def harm(checkpoint: Path) -> None:
        (checkpoint / name).unlink()
        make(checkpoint / name)

    return harm


def header(text: bytes) -> Callable[[bytes], bytes]:
    return lambda _: struct.pack("<Q", len(text)) + text + b"\0" * 16


def change_first(change: Callable[[Tensor], Tensor]) -> Harm:
    def apply(tensors: dict[str, Tensor]) -> None:
        name = next(iter(tensors))
        tensors[name] = change(tensors[name]).contiguous()

    return tensors_with(apply)


def add_bombs(checkpoint: Path) -> None:
    """Files that nobody named; whoever opened them would regret it."""
    (checkpoint / "network.pt").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with zipfile.ZipFile(checkpoint / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("zeros", b"\0" * 10_000_000)


def leave_temporary(checkpoint: Path) -> None:
    name = f".tmp-checkpoint-{socket.gethostname()}-1-ab"
    shutil.copytree(checkpoint, checkpoint.with_name(name))


def skew_clock(checkpoint: Path) -> None:
    os.utime(checkpoint, (1.0, 1.0))


def name_twice(checkpoint: Path) -> None:
    """The same steps under a later number."""
    shutil.copytree(checkpoint, checkpoint.with_name("00000000003"))


OVERLAPPING = (
    b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
    b'"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}'
)


@dataclass(frozen=True, slots=True)
class Skipped:
    """The one before it is used."""

    harm: Harm
    words: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Its hashes are right, so nothing damaged it: the learner refuses to go on with it."""

    harm: Harm
    words: str
    error: type[Exception] = CheckpointCorrupt


@dataclass(frozen=True, slots=True)
class Used:
    """Odd, but sound."""

    harm: Harm


CASES: dict[str, Skipped | Refused | Used] = {
    "manifest missing": Skipped(lambda path: (path / "manifest.json").unlink(), "No such file"),
    "manifest empty": Skipped(content_of("manifest.json", lambda _: b""), "cannot be read"),
    "manifest partial": Skipped(content_of("manifest.json", lambda old: old[:40]), "cannot be"),
    "newer schema": Skipped(body_with(schema=2), "schema: expected 1, got 2"),
    "file missing": Skipped(lambda path: (path / NETWORK).unlink(), "No such file"),
    "hash wrong": Skipped(lambda path: flip_byte(path / NETWORK, -1), "sha256 of network"),
    "0 bytes": Skipped(content_of(NETWORK, lambda _: b""), "size of network"),
    "link": Skipped(replace_by(lambda path: path.symlink_to("/etc/passwd")), "cannot be opened"),
    "folder": Skipped(replace_by(lambda path: path.mkdir()), "regular file"),
    "pipe": Skipped(replace_by(os.mkfifo), "regular file"),
    "name with a slash": Skipped(named("a/b"), "file name: expected a plain name"),
    "name that leaves": Skipped(named("../../etc/passwd"), "file name: expected a plain name"),
    "other steps inside": Skipped(body_with(agent_steps=1), "agent steps"),
    "same steps twice": Skipped(name_twice, "agent steps: expected 00000000003, got 2"),
    "header cut": Refused(content_of(NETWORK, lambda old: old[:20], sealed=True), "safetensors"),
    "header of 2^63 bytes": Refused(
        content_of(NETWORK, lambda old: struct.pack("<Q", 2**63) + old[8:], sealed=True),
        "safetensors",
    ),
    "overlapping offsets": Refused(
        content_of(NETWORK, header(OVERLAPPING), sealed=True), "safetensors"
    ),
    "pickle in its place": Refused(
        content_of(NETWORK, lambda _: b"cos\nsystem\n(S'false'\ntR.", sealed=True), "safetensors"
    ),
    "state is no JSON": Refused(content_of("state.json", lambda _: b"{", sealed=True), "not JSON"),
    "tensor missing": Refused(
        tensors_with(lambda tensors: tensors.popitem()), "is missing", CheckpointMismatch
    ),
    "tensor too many": Refused(
        tensors_with(lambda tensors: tensors.update(more=torch.zeros(1))),
        "more is unknown",
        CheckpointMismatch,
    ),
    "other shape": Refused(
        change_first(lambda old: torch.cat((old, old))), "expected float32", CheckpointMismatch
    ),
    "other type": Refused(change_first(Tensor.double), "got float64", CheckpointMismatch),
    "NaN": Refused(change_first(lambda old: old * torch.nan), "expected finite values"),
    "more files": Used(add_bombs),
    "leftover": Used(leave_temporary),
    "clock in the past": Used(skew_clock),
}


@pytest.mark.parametrize("case", CASES)
def test_damage_is_named_and_never_believed(case: str, newest: Path) -> None:
    outcome: Any = CASES[case]
    outcome.harm(newest)

    point = find_resume(newest.parent.parent)

    assert point is not None
    if isinstance(outcome, Skipped):
        (problem,) = point.skipped
        expected = 2 if case == "same steps twice" else 1
        assert point.agent_steps == expected
        assert outcome.words in problem
        return
    assert (point.agent_steps, point.skipped) == (2, ())
    if isinstance(outcome, Used):
        restore_checkpoint(tiny_learner(seed=3), load_checkpoint(point.path))
    else:
        with pytest.raises(outcome.error, match=outcome.words):
            restore_checkpoint(tiny_learner(seed=3), load_checkpoint(point.path))


def test_a_file_that_may_not_be_read_is_skipped(newest: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (newest / NETWORK).chmod(0)

    point = find_resume(newest.parent.parent)

    assert point is not None
    assert "Permission denied" in point.skipped[0]


def test_what_was_saved_on_a_gpu_is_loaded_on_the_cpu(newest: Path) -> None:
    """Tensors are written without their device."""
    for tensors in load_checkpoint(newest).tensors.values():
        assert {tensor.device.type for tensor in tensors.values()} == {"cpu"}
