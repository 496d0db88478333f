from __future__ import annotations

from pathlib import Path

import pytest

from common.config import RunSettings
from common.errors import ConfigError
from common.run_paths import OUR_NAMES, RunPaths


def test_all_files_of_a_run_lie_in_its_folder(tmp_path: Path) -> None:
    paths = RunPaths.of(RunSettings(run="first", runs_dir=str(tmp_path)))

    assert paths.root == tmp_path.resolve() / "first"
    files = (
        paths.config,
        paths.metrics,
        paths.heartbeat,
        paths.checkpoints,
        paths.lock,
        paths.diagnostics,
        paths.process_log("actor-0"),
        paths.process_heartbeat("actor-0"),
    )
    assert all(file.is_relative_to(paths.root) for file in files)
    assert len(set(files)) == len(files)


def test_a_run_that_is_a_link_to_the_outside_is_refused(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "runs" / "first").symlink_to("../outside")

    with pytest.raises(ConfigError, match=r"leads out of .*runs, to .*outside; give"):
        RunPaths.of(RunSettings(run="first", runs_dir=str(tmp_path / "runs")))


def test_links_that_stay_inside_and_a_runs_folder_that_is_one_are_fine(tmp_path: Path) -> None:
    (tmp_path / "runs" / "real").mkdir(parents=True)
    (tmp_path / "runs" / "first").symlink_to("real")
    (tmp_path / "link").symlink_to("runs")

    paths = RunPaths.of(RunSettings(run="first", runs_dir=str(tmp_path / "link")))

    assert paths.root == tmp_path.resolve() / "runs" / "first"


@pytest.mark.parametrize("name", ["..", "../x", "/etc", "a/b", ".hidden", "x\n", "-x", "x..y"])
def test_a_run_name_cannot_leave_the_runs_folder(name: str) -> None:
    with pytest.raises(ConfigError, match="not usable"):
        RunSettings(run=name)


def test_naming_files_creates_none(tmp_path: Path) -> None:
    RunPaths.of(RunSettings(run="first", runs_dir=str(tmp_path / "new")))

    assert list(tmp_path.iterdir()) == []


def test_the_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert RunPaths.of(RunSettings(runs_dir="~/runs")).root == tmp_path.resolve() / "runs/default"


@pytest.mark.parametrize("place", ["runs", "first"])
def test_a_link_that_leads_to_itself_is_refused(tmp_path: Path, place: str) -> None:
    runs = tmp_path / "runs"
    if place == "first":
        runs.mkdir()
    link = runs if place == "runs" else runs / "first"
    link.symlink_to(link)

    with pytest.raises(ConfigError, match="choose another one"):
        RunPaths.of(RunSettings(run="first", runs_dir=str(runs)))


def test_a_home_folder_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="--runs-dir"):
        RunPaths.of(RunSettings(runs_dir="~nobody-has-this-name/runs"))


@pytest.mark.parametrize("name", [*OUR_NAMES, "replay-0-of-2", "replay-1-of-2/cuts"])
def test_a_link_in_the_place_of_a_file_of_the_run_is_refused(tmp_path: Path, name: str) -> None:
    place = tmp_path / "run" / name
    place.parent.mkdir(parents=True)
    place.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ConfigError, match=f"{name} is a link to {tmp_path}/elsewhere.*; remove it"):
        RunPaths(tmp_path / "run").refuse_links()


def test_links_that_are_no_files_of_ours_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes").symlink_to("/nowhere")

    RunPaths(tmp_path).refuse_links()
