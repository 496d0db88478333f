from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from common.errors import CheckpointMissing
from common.ids import Incarnation
from common.run_config import git_commit
from common.run_paths import RunPaths
from launch.child import Child
from launch.doctor import main as doctor
from launch.local import main as launcher
from launch.plan import ProcessSpec
from launch.run_dir import locked, make_run_dir, unmade_if_refused
from launch.stacks import keep_stacks


def test_no_file_is_overwritten_to_see_whether_a_folder_is_writable(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    (run / ".writable").symlink_to(victim)

    make_run_dir(RunPaths(run))

    assert victim.read_text() == "mine"
    assert [path.name for path in run.iterdir()] == [".writable"]


def refused_start(paths: RunPaths) -> None:
    """As far as the launcher gets before it knows that there is nothing to go on from."""
    made = make_run_dir(paths)
    with locked(paths):
        log_file = paths.process_log("launcher-0")
        log_file.parent.mkdir(exist_ok=True)
        log_file.touch()
        with unmade_if_refused(paths, made):
            raise CheckpointMissing("none")


def test_a_refused_start_leaves_no_folder_that_it_made(tmp_path: Path) -> None:
    with pytest.raises(CheckpointMissing):
        refused_start(RunPaths(tmp_path / "new" / "runs" / "r"))

    assert list(tmp_path.iterdir()) == []


def test_a_refused_start_leaves_a_run_that_was_there_alone(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "r"
    run.mkdir(parents=True)

    with pytest.raises(CheckpointMissing):
        refused_start(RunPaths(run))

    assert (run / "logs" / "launcher-0.log").exists()


def test_a_refused_start_removes_no_file_of_others(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "r")
    made = make_run_dir(paths)
    (paths.root / "notes.txt").touch()

    with (
        pytest.raises(CheckpointMissing),
        locked(paths),
        unmade_if_refused(paths, made),
    ):
        raise CheckpointMissing("none")

    assert (paths.root / "notes.txt").exists()


@pytest.mark.parametrize("name", ["launcher.lock", "quarantine", "logs", "checkpoints"])
def test_a_run_with_links_is_refused_by_launcher_and_doctor(
    tmp_path: Path,
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.umask", lambda _: 0)
    victim, run = tmp_path / "victim", tmp_path / "runs" / "default"
    victim.write_text("mine")
    run.mkdir(parents=True)
    (run / "metrics.jsonl").touch()
    (run / name).symlink_to(victim)
    start = ["--runs-dir", str(run.parent), "--device", "cpu", "--game", "corridor"]

    codes = launcher(start), launcher([*start, "--fresh"]), doctor([str(run), "--repair"])

    assert codes == (2, 2, 2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(f"{run / name} is a link to {victim}" in line for line in lines)
    assert victim.read_text() == "mine"


def test_stacks_are_not_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "stacks.txt").symlink_to(victim)

    assert keep_stacks(tmp_path / "stacks.txt", "words", "") is not None

    assert victim.read_text() == "mine"


def test_the_log_of_a_child_is_not_opened_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "actor-0.log").symlink_to(victim)
    spec = ProcessSpec(
        role="actor",
        index=0,
        argv=("echo", "harm"),
        restart_argv=("echo", "harm"),
        environment={},
        log_file=tmp_path / "actor-0.log",
        heartbeat_file=tmp_path / "actor-0.jsonl",
        diagnostics=tmp_path,
    )
    child = Child(spec)

    with pytest.raises(OSError, match="symbolic links"):
        child.start(0.0, Incarnation(1))

    assert child.pulse is not None
    child.pulse.close_writer()
    child.pulse.close()
    assert victim.read_text() == "mine"


def checkout(folder: Path) -> Path:
    """A repository with one commit."""
    (folder / "actor").mkdir()
    (folder / "actor" / "loop.py").write_text("pass\n")
    (folder / "README.md").write_text("Hello.\n")
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "."), (*author, "commit", "-q", "-m", "First")):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def test_the_commit_says_when_the_code_is_not_quite_that_of_it(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    clean = git_commit(root)
    (root / "README.md").write_text("Good day.\n")
    (root / "runs").mkdir()
    (root / "runs" / "notes.py").write_text("pass\n")
    told_of_documents = git_commit(root)

    (root / "actor" / "loop.py").write_text("raise\n")

    assert clean is not None
    assert len(clean) == 40
    assert told_of_documents == clean
    assert git_commit(root) == f"{clean}-dirty"


def test_a_file_of_the_code_that_was_never_added_counts_as_a_change(tmp_path: Path) -> None:
    root = checkout(tmp_path)

    (root / "actor" / "new.py").write_text("pass\n")

    assert str(git_commit(root)).endswith("-dirty")


def test_outside_of_a_checkout_there_is_no_commit(tmp_path: Path) -> None:
    assert git_commit(tmp_path) is None
