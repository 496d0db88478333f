from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered, load_checkpoint
from common.errors import MarioError
from learner import archive as archive_module
from learner.archive import Archive
from learner.checkpoint import Checkpoint, write_checkpoint
from learner.update import Learner
from tests.learner_factory import random_batch, tiny_learner
from tests.scripted_peers import FakeClock
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def learner() -> Learner:
    return tiny_learner()


def make_archive(folder: Path, clock: FakeClock | None = None, agent_steps: int = 0) -> Archive:
    return Archive(
        folder,
        interval_s=60,
        interval_agent_steps=1_000,
        keep=2,
        agent_steps=agent_steps,
        clock=clock or FakeClock(),
    )


def fill_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def write(*_: object) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archive_module, "write_checkpoint", write)


def test_a_checkpoint_is_due_once_per_interval(tmp_path: Path, learner: Learner) -> None:
    clock = FakeClock()
    archive = make_archive(tmp_path, clock)
    at_start = archive.due(5)
    clock.advance(60)
    after_interval = archive.due(10)

    archive.save(learner, 10, {})

    assert not at_start
    assert after_interval
    assert not archive.due(20)


def test_a_checkpoint_is_due_when_evaluation_wants_one(tmp_path: Path, learner: Learner) -> None:
    archive = make_archive(tmp_path)

    before, at_milestone = archive.due(999), archive.due(1_003)
    archive.save(learner, 1_003, {})

    assert not before
    assert at_milestone
    assert not archive.due(1_900)
    assert archive.due(2_000)


def test_a_resumed_run_does_not_repeat_its_milestone(tmp_path: Path) -> None:
    archive = make_archive(tmp_path, agent_steps=5_400)

    assert not archive.due(5_500)
    assert archive.due(6_000)


def test_saved_state_is_loadable_and_old_ones_are_removed(tmp_path: Path, learner: Learner) -> None:
    archive = make_archive(tmp_path)

    paths = [
        archive.save(learner, steps, {"progress": {"agent_steps": steps}}) for steps in (1, 2, 3)
    ]

    assert list_numbered(tmp_path) == [paths[2], paths[1]]
    assert paths[2] is not None
    data = load_checkpoint(paths[2])
    assert data.agent_steps == 3
    assert data.state["run"] == {"progress": {"agent_steps": 3}}


def test_a_full_disk_is_survived_once(
    tmp_path: Path, learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_archive(tmp_path)
    with monkeypatch.context() as patch:
        fill_disk(patch)
        assert archive.save(learner, 1, {}) is None
    assert archive.last_error is not None
    assert "No space left" in archive.last_error

    assert archive.save(learner, 2, {}) is not None
    assert archive.last_error is None
    assert archive.failures_in_a_row == 0


def test_a_full_disk_three_times_in_a_row_ends_the_run(
    tmp_path: Path, learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_archive(tmp_path)
    fill_disk(monkeypatch)
    archive.save(learner, 1, {})
    archive.save(learner, 2, {})

    with pytest.raises(MarioError, match=r"3 checkpoints in a row.*No space left"):
        archive.save(learner, 3, {})


def test_failures_that_are_not_in_a_row_do_not_add_up(
    tmp_path: Path, learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_archive(tmp_path)
    for steps in range(0, 10, 2):
        with monkeypatch.context() as patch:
            fill_disk(patch)
            archive.save(learner, steps, {})
        assert archive.save(learner, steps + 1, {}) is not None


class SlowDisk:
    """Writes nothing until it is let go."""

    def __init__(self) -> None:
        self.may_write = threading.Event()

    def write(self, folder: Path, checkpoint: Checkpoint) -> Path:
        assert self.may_write.wait(30)
        return write_checkpoint(folder, checkpoint)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowDisk]:
    slow = SlowDisk()
    monkeypatch.setattr(archive_module, "write_checkpoint", slow.write)
    yield slow
    slow.may_write.set()


def test_training_goes_on_while_a_checkpoint_is_written(tmp_path: Path, disk: SlowDisk) -> None:
    clock, learner = FakeClock(), tiny_learner()
    archive = make_archive(tmp_path, clock)
    archive.begin(learner, 10, {})
    name, weights = next(iter(learner.online.state_dict().items()))
    before = weights.clone()
    learner.update(random_batch())
    clock.advance(120)
    is_due_meanwhile = archive.due(5_000)

    disk.may_write.set()
    wait_until("the disk is free", lambda: archive.due(5_000), 10)

    assert not is_due_meanwhile
    data = load_checkpoint(list_numbered(tmp_path)[0])
    assert data.agent_steps == 10
    assert data.tensors["network"][name].equal(before)
    assert not weights.equal(before)
    assert data.state["learner"]["updates"] == 0  # type: ignore[index,call-overload] # JSON


def test_who_saves_waits_for_the_one_before(tmp_path: Path, disk: SlowDisk) -> None:
    archive, learner = make_archive(tmp_path), tiny_learner()
    archive.begin(learner, 1, {})
    threading.Timer(0.1, disk.may_write.set).start()

    path = archive.save(learner, 2, {})

    assert [int(one.name) for one in list_numbered(tmp_path)] == [2, 1]
    assert path == list_numbered(tmp_path)[0]


def test_closing_waits_for_the_writer(tmp_path: Path, disk: SlowDisk) -> None:
    archive = make_archive(tmp_path)
    archive.begin(tiny_learner(), 1, {})
    threading.Timer(0.1, disk.may_write.set).start()

    archive.close()

    assert len(list_numbered(tmp_path)) == 1


def test_failures_beside_the_training_are_counted_too(
    tmp_path: Path, learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = make_archive(tmp_path)
    fill_disk(monkeypatch)
    for steps in (1, 2):
        archive.begin(learner, steps, {})
        wait_until("the failure is known", partial(_has_failed, archive, steps), 10)
    assert archive.last_error is not None
    assert "No space left" in archive.last_error

    archive.begin(learner, 3, {})
    with pytest.raises(MarioError, match="3 checkpoints in a row"):
        wait_until("the run ends", partial(_has_failed, archive, 4), 10)


def _has_failed(archive: Archive, times: int) -> bool:
    archive.due(0)
    return archive.failures_in_a_row == times


def test_what_nobody_foresaw_ends_the_training_thread(
    tmp_path: Path, learner: Learner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Path:
        raise ZeroDivisionError

    monkeypatch.setattr(archive_module, "write_checkpoint", fail)
    archive = make_archive(tmp_path)
    archive.begin(learner, 1, {})

    with pytest.raises(ZeroDivisionError):
        archive.save(learner, 2, {})
