from __future__ import annotations

import errno
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered, load_checkpoint
from common.errors import MarioError
from learner import archive as archive_module
from learner.archive import Archive
from learner.update import Learner
from tests.learner_factory import tiny_learner
from tests.scripted_peers import FakeClock


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
