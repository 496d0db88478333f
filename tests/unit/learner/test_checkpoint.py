from __future__ import annotations

import contextlib
import errno
import functools
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from common.checkpoint_files import list_numbered, load_checkpoint, verify_checkpoint
from common.errors import CheckpointCorrupt
from common.resume import find_resume, mark_best
from common.state_dicts import plain_state_dict
from learner.checkpoint import (
    Checkpoint,
    checkpoint_of,
    prune_checkpoints,
    remove_leftovers,
    restore_checkpoint,
    set_aside_newer,
    write_checkpoint,
)
from tests.checkpoint_factory import damage, write_small_checkpoint
from tests.learner_factory import random_batch, tiny_learner


class Killed(BaseException):
    """Stands for the end of the process: no handler of ours may run after it."""


@functools.cache
def make_checkpoint(agent_steps: int) -> Checkpoint:
    return checkpoint_of(tiny_learner(), agent_steps=agent_steps, run={"limiter": {"inserted": 5}})


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_checkpoint_holds_everything_and_nothing_else(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "checkpoints", make_checkpoint(12_000))

    assert path == tmp_path / "checkpoints" / "00000012000"
    assert names_in(path.parent) == ["00000012000", "latest"]
    assert names_in(path) == [
        "manifest.json",
        "network.safetensors",
        "optimizer.safetensors",
        "state.json",
        "target.safetensors",
    ]
    assert (path.parent / "latest").read_text() == "00000012000\n"
    assert verify_checkpoint(path).agent_steps == 12_000


def test_resumed_run_continues_bit_for_bit(tmp_path: Path) -> None:
    torch.manual_seed(4)
    learner = tiny_learner()
    for seed in range(4):
        learner.update(random_batch(seed=seed))
    path = write_checkpoint(tmp_path, checkpoint_of(learner, agent_steps=8, run={"seed": 4}))
    drawn = [random.random(), torch.rand(1).item()]
    for seed in range(4, 9):
        learner.update(random_batch(seed=seed))

    resumed = tiny_learner(seed=77)
    run = restore_checkpoint(resumed, load_checkpoint(path))
    assert [random.random(), torch.rand(1).item()] == drawn
    for seed in range(4, 9):
        resumed.update(random_batch(seed=seed))

    assert run == {"seed": 4}
    assert resumed.updates == 9
    expected = plain_state_dict(learner.online)
    for name, tensor in plain_state_dict(resumed.online).items():
        assert torch.equal(tensor, expected[name]), name


CALLS = ("mkdir", "open", "fsync", "rename", "replace")


def count_calls(monkeypatch: pytest.MonkeyPatch, on_call: Callable[[int, str], None]) -> None:
    """Number the calls that change the disk; `on_call` runs before each of them."""
    counter = 0

    def numbered(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal counter
            counter += 1
            on_call(counter, name)
            return original(*args, **kwargs)

        return call

    for name in CALLS:
        monkeypatch.setattr(os, name, numbered(name, getattr(os, name)))


def calls_of_one_write(tmp_path: Path) -> list[str]:
    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        count_calls(patch, lambda _, name: calls.append(name))
        write_checkpoint(tmp_path / "dry", make_checkpoint(2))
    return calls


def test_order_of_a_write_is_files_manifest_rename_folder(tmp_path: Path) -> None:
    calls = calls_of_one_write(tmp_path)

    first = [name for name in calls if name != "mkdir"]
    published = first.index("rename")
    assert first[:published] == ["open", "fsync"] * 6  # five files and the temporary folder
    sync_folder = ["open", "fsync"]
    write_latest = ["open", "fsync", "replace", *sync_folder]
    assert first[published:] == ["rename", *sync_folder, *write_latest]


def test_kill_at_any_call_leaves_a_valid_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = len(calls_of_one_write(tmp_path))
    # A killed process tidies nothing up.
    monkeypatch.setattr(shutil, "rmtree", lambda *_, **__: None)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    for stop_at in range(1, total + 1):
        folder = tmp_path / f"run{stop_at}" / "checkpoints"
        write_checkpoint(folder, make_checkpoint(1))

        def kill(number: int, _: str, stop_at: int = stop_at) -> None:
            if number == stop_at:
                raise Killed

        with pytest.MonkeyPatch.context() as patch:
            count_calls(patch, kill)
            with pytest.raises(Killed):
                write_checkpoint(folder, make_checkpoint(2))

        point = find_resume(folder.parent)
        assert point is not None
        assert point.source == "numbered"
        for path in list_numbered(folder):
            verify_checkpoint(path)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_disk_error_at_any_call_leaves_no_temporary_files(tmp_path: Path, code: int) -> None:
    total = len(calls_of_one_write(tmp_path))
    for stop_at in range(1, total + 1):
        folder = tmp_path / f"run{stop_at}"
        write_checkpoint(folder, make_checkpoint(1))

        def fail(number: int, _: str, stop_at: int = stop_at) -> None:
            if number == stop_at:
                raise OSError(code, "injected")

        with pytest.MonkeyPatch.context() as patch, contextlib.suppress(OSError):
            count_calls(patch, fail)
            write_checkpoint(folder, make_checkpoint(2))

        assert not [name for name in names_in(folder) if name.startswith(".tmp")]
        assert find_resume(tmp_path, explicit=folder / "00000000001") is not None


def test_valid_checkpoint_of_the_same_step_is_kept(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path, make_checkpoint(3))
    before = (path / "manifest.json").read_bytes()

    assert write_checkpoint(tmp_path, make_checkpoint(3)) == path
    assert (path / "manifest.json").read_bytes() == before


def test_corrupt_checkpoint_of_the_same_step_is_set_aside(tmp_path: Path) -> None:
    damage(write_checkpoint(tmp_path, make_checkpoint(3)))

    path = write_checkpoint(tmp_path, make_checkpoint(3))

    verify_checkpoint(path)
    new, aside, latest = names_in(tmp_path)
    assert (new, latest) == ("00000000003", "latest")
    assert aside.startswith("abandoned-00000000003-")


def test_state_that_is_not_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    checkpoint = checkpoint_of(tiny_learner(), agent_steps=1, run={"loss": float("nan")})

    with pytest.raises(ValueError, match="Out of range float"):
        write_checkpoint(tmp_path / "checkpoints", checkpoint)

    assert names_in(tmp_path / "checkpoints") == []


@pytest.mark.parametrize("steps", [-1, 10**11])
def test_steps_that_do_not_fit_the_name_are_refused(tmp_path: Path, steps: int) -> None:
    with pytest.raises(ValueError, match="11 digits"):
        write_checkpoint(tmp_path, make_checkpoint(steps))


def test_incomplete_state_is_refused(tmp_path: Path) -> None:
    data = load_checkpoint(write_small_checkpoint(tmp_path, 1))

    with pytest.raises(CheckpointCorrupt, match="incomplete"):
        restore_checkpoint(tiny_learner(), data)


def write_many(folder: Path, steps: range) -> None:
    for agent_steps in steps:
        write_checkpoint(folder, make_checkpoint(agent_steps))


def test_prune_keeps_the_newest(tmp_path: Path) -> None:
    write_many(tmp_path, range(1, 8))

    removed = prune_checkpoints(tmp_path)

    assert [int(path.name) for path in removed] == [2, 1]
    assert [int(path.name) for path in list_numbered(tmp_path)] == [7, 6, 5, 4, 3]
    assert prune_checkpoints(tmp_path) == []


def test_prune_spares_best_and_everything_that_is_not_numbered(tmp_path: Path) -> None:
    write_many(tmp_path, range(1, 5))
    mark_best(tmp_path, "00000000002")
    shutil.copytree(tmp_path / "00000000001", tmp_path / "by-hand")

    prune_checkpoints(tmp_path, keep=1)

    assert names_in(tmp_path) == ["00000000002", "00000000004", "best", "by-hand", "latest"]


def test_prune_never_removes_the_newest_valid_one(tmp_path: Path) -> None:
    write_many(tmp_path, range(1, 6))
    for agent_steps in (3, 4, 5):
        damage(tmp_path / f"{agent_steps:011d}")

    prune_checkpoints(tmp_path, keep=2)

    assert [int(path.name) for path in list_numbered(tmp_path)] == [5, 4, 2]


def test_prune_with_nothing_to_keep_still_keeps_one(tmp_path: Path) -> None:
    write_many(tmp_path, range(1, 3))

    prune_checkpoints(tmp_path, keep=0)

    assert [int(path.name) for path in list_numbered(tmp_path)] == [2]


def test_going_back_sets_the_abandoned_future_aside(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    write_many(folder, range(1, 4))

    moved = set_aside_newer(folder, 1)

    point = find_resume(tmp_path)
    assert point is not None
    assert point.agent_steps == 1
    assert len(moved) == 2
    assert all(path.name.startswith("abandoned-") and path.is_dir() for path in moved)


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(timeout=30)
    return process.pid


def test_leftovers_of_dead_writers_are_removed_and_of_living_ones_kept(tmp_path: Path) -> None:
    host = socket.gethostname()
    gone = [f".tmp-checkpoint-{host}-{dead_pid()}-ab", f".tmp-checkpoint-{host}-{os.getpid()}-cd"]
    gone.append(".tmp-removed-00000000001-ef")
    kept = [f".tmp-checkpoint-{host}-{os.getppid()}-ab", ".tmp-checkpoint-elsewhere-1-ab"]
    for name in (*gone, *kept, "00000000001", "notes"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(b"x")
    (tmp_path / ".tmp-latest-1-ab").write_bytes(b"x")

    removed = remove_leftovers(tmp_path)

    assert sorted(path.name for path in removed) == sorted([*gone, ".tmp-latest-1-ab"])
    assert names_in(tmp_path) == sorted([*kept, "00000000001", "notes"])


def test_old_leftover_of_another_host_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / ".tmp-checkpoint-elsewhere-1-ab"
    folder.mkdir()
    os.utime(folder, (1.0, 1.0))

    assert remove_leftovers(tmp_path) == [folder]
    assert remove_leftovers(tmp_path / "nowhere") == []
