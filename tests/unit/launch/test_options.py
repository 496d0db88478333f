from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from common.config import RunSettings, Settings
from common.errors import ConfigError
from common.run_paths import RunPaths
from launch.options import parse_local, preset_names, preset_path
from launch.resume_choice import changed_settings
from launch.run_dir import locked, make_run_dir, set_aside, write_config


def stored_run(folder: Path, settings: Settings) -> RunPaths:
    run = replace(settings.run, run="kept", runs_dir=str(folder))
    paths = RunPaths.of(run)
    make_run_dir(paths)
    write_config(paths, replace(settings, run=run))
    return paths


def with_batch(size: int) -> Settings:
    base = Settings(run=RunSettings(max_agent_steps=77))
    return replace(base, learner=replace(base.learner, batch_size=size))


def test_flags_go_over_a_preset() -> None:
    args = parse_local(["--preset", "laptop", "--actors", "3"])

    assert args.settings.actor.actors == 3
    assert args.settings.actor.envs_per_actor == 8


def test_the_last_preset_wins_as_with_any_flag() -> None:
    args = parse_local(["--preset", "laptop", "--preset", "smoke"])

    assert args.settings.actor.actors == 2
    assert args.settings.actor.envs_per_actor == 1


def test_underscores_in_flags_are_as_good_as_dashes(tmp_path: Path) -> None:
    stored_run(tmp_path, with_batch(17))

    args = parse_local(["--runs_dir", str(tmp_path), "--run", "kept"])

    assert args.settings.learner.batch_size == 17


def test_every_shipped_preset_is_valid() -> None:
    assert preset_names() == ["bootstrap", "laptop", "smoke", "stable", "workstation"]
    for name in preset_names():
        parse_local(["--preset", name])


def test_an_unknown_preset_names_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="bootstrap, laptop, smoke, stable, workstation"):
        preset_path("desktop")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--resume"], "latest"),
        (["--resume", "--actors", "2"], "latest"),
        (["--resume", "runs/x"], "runs/x"),
        (["--resume=none"], "none"),
        ([], "auto"),
    ],
)
def test_resume_alone_means_the_latest(words: list[str], expected: str) -> None:
    assert parse_local(words).resume == expected


def test_a_run_that_goes_on_keeps_its_settings_but_not_its_budget(tmp_path: Path) -> None:
    stored_run(tmp_path, with_batch(17))

    args = parse_local(["--runs-dir", str(tmp_path), "--run", "kept", "--actors", "5"])

    assert args.settings.learner.batch_size == 17
    assert args.settings.actor.actors == 5
    assert args.settings.run.max_agent_steps == 0


def test_a_fresh_run_begins_with_the_defaults(tmp_path: Path) -> None:
    stored_run(tmp_path, with_batch(17))

    args = parse_local(["--runs-dir", str(tmp_path), "--run", "kept", "--fresh"])

    assert args.settings.learner.batch_size == Settings().learner.batch_size


def test_changes_are_listed_and_other_shapes_refused(tmp_path: Path) -> None:
    paths = stored_run(tmp_path, with_batch(17))
    same = with_batch(64)
    bigger = replace(same, learner=replace(same.learner, network="nature"))

    changed = changed_settings(paths, replace(same, run=replace(same.run, run="kept")))

    assert changed["batch_size"] == (17, 64)
    assert "max_agent_steps" not in changed
    with pytest.raises(ConfigError, match="--network was small"):
        changed_settings(paths, bigger)


def test_a_locked_run_is_refused_and_free_again_afterwards(tmp_path: Path) -> None:
    paths = stored_run(tmp_path, Settings())

    with (
        locked(paths),
        pytest.raises(ConfigError, match="in use by process"),
        locked(paths),
    ):
        pass

    with locked(paths):
        pass


def test_a_run_that_is_set_aside_keeps_everything(tmp_path: Path) -> None:
    paths = stored_run(tmp_path, Settings())

    moved = set_aside(paths)

    assert not paths.root.exists()
    assert (moved / "config.json").exists()


def test_runs_that_are_set_aside_within_a_second_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.strftime", lambda *_: "20260101-000000")

    moved = [set_aside(stored_run(tmp_path, Settings())) for _ in range(3)]

    assert [path.name for path in moved] == [
        "kept.before-20260101-000000",
        "kept.before-20260101-000000-2",
        "kept.before-20260101-000000-3",
    ]
    assert all((path / "config.json").exists() for path in moved)


def test_a_run_that_cannot_be_moved_aside_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = stored_run(tmp_path, Settings())
    monkeypatch.setattr("launch.run_dir._free_name", lambda *_: tmp_path / "none" / "there")

    with pytest.raises(ConfigError, match=r"cannot move .*kept to .*; choose another --run"):
        set_aside(paths)
