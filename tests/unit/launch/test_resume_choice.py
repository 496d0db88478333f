from __future__ import annotations

from pathlib import Path

import pytest

import common.resume
from common.errors import CheckpointMissing
from common.run_paths import RunPaths
from launch.resume_choice import choose_resume, describe_resume
from tests.checkpoint_factory import damage, write_small_checkpoint


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    return tmp_path / "runs"


def lines(runs: Path, resume: str) -> list[str]:
    point = choose_resume(resume, RunPaths(runs / "mine"), runs)
    assert point is not None
    return list(describe_resume(point, RunPaths(runs / "mine")))


def test_latest_takes_the_newest_valid_one_below_the_runs_folder_and_says_where(runs: Path) -> None:
    write_small_checkpoint(runs / "a" / "checkpoints", 5)
    taken = write_small_checkpoint(runs / "deep" / "er" / "b" / "checkpoints", 7)
    damaged = write_small_checkpoint(runs / "a" / "checkpoints", 9)
    damage(damaged)
    elsewhere = write_small_checkpoint(runs.parent / "outside", 11)
    (runs / "link").symlink_to(elsewhere.parent)

    warning, search, going = lines(runs, "latest")

    assert warning.startswith(f"WARNING: skipped {damaged}: ")
    assert search.startswith("searched ")
    assert search.endswith(f" entries below {runs}: 3 checkpoints in 2 folders")
    assert going == (
        f"going on from {taken} at 7 agent steps, of run b, not of mine, "
        "the newest valid one that was found (--fresh begins anew)"
    )


def test_a_search_that_ended_at_its_bound_says_so(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_small_checkpoint(runs / "a", 5)
    for number in range(20):
        (runs / "mine" / "notes" / f"{number}").mkdir(parents=True)
    monkeypatch.setattr(common.resume, "MAX_SEARCHED_ENTRIES", 12)

    said = lines(runs, "latest")

    assert said[0].startswith("searched 12 entries below ")
    assert said[1].startswith("WARNING: the search ended at its bound")


def test_a_checkpoint_of_the_run_itself_needs_no_search(runs: Path) -> None:
    own = write_small_checkpoint(runs / "mine" / "checkpoints", 3)
    write_small_checkpoint(runs / "a" / "checkpoints", 5)

    assert lines(runs, "latest") == [
        f"going on from {own} at 3 agent steps, the newest valid one of this run "
        "(--fresh begins anew)"
    ]
    assert choose_resume("none", RunPaths(runs / "mine"), runs) is None


def test_a_path_is_taken_as_asked_for(runs: Path) -> None:
    given = write_small_checkpoint(runs / "a" / "checkpoints", 5)
    write_small_checkpoint(runs / "mine" / "checkpoints", 9)

    (line,) = lines(runs, str(given))

    assert f"{given} at 5 agent steps, of run a, not of mine, as asked for" in line


def test_auto_never_takes_up_another_run(runs: Path) -> None:
    write_small_checkpoint(runs / "a" / "checkpoints", 5)

    assert choose_resume("auto", RunPaths(runs / "mine"), runs) is None


def test_latest_without_any_is_refused(runs: Path) -> None:
    with pytest.raises(CheckpointMissing, match="no checkpoint below"):
        choose_resume("latest", RunPaths(runs / "mine"), runs)
