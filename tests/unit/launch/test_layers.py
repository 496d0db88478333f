"""Flags go over the environment, that over presets, those over the stored run and the defaults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from common.config import Settings
from common.errors import ConfigError
from common.run_paths import RunPaths
from launch.layers import note_changes
from launch.options import Resolution, parse_local, resolve, without_settings
from launch.run_dir import make_run_dir, write_config


@pytest.fixture
def stored(tmp_path: Path) -> list[str]:
    """The flags that name a run with stored settings: batch size 17, 3 actors, seed 7."""
    settings = Settings()
    settings = replace(
        settings,
        run=replace(settings.run, run="kept", runs_dir=str(tmp_path), seed=7, max_updates=5),
        actor=replace(settings.actor, actors=3),
        learner=replace(settings.learner, batch_size=17),
    )
    paths = RunPaths.of(settings.run)
    make_run_dir(paths)
    write_config(paths, settings)
    return ["--runs-dir", str(tmp_path), "--run", "kept"]


def preset(folder: Path, text: str) -> list[str]:
    path = folder / "mine.toml"
    path.write_text(text)
    return ["--preset", str(path)]


def origins(resolution: Resolution, *names: str) -> list[str]:
    return [resolution.origins[name] for name in names]


def test_who_speaks_later_wins_and_is_named(stored: list[str], tmp_path: Path) -> None:
    words = preset(tmp_path, "[actor]\nactors = 4\nblock_steps = 32\nsend_window = 9\n")
    environment = {"MARIO_BLOCK_STEPS": "48", "MARIO_SEND_WINDOW": "7"}

    found = resolve([*stored, *words, "--send-window", "5"], environment)

    actor = found.args.settings.actor
    assert (actor.actors, actor.block_steps, actor.send_window) == (4, 48, 5)
    assert found.args.settings.learner.batch_size == 17
    assert origins(found, "actors", "block_steps", "send_window", "batch_size", "gamma") == [
        f"preset {tmp_path / 'mine.toml'}",
        "environment MARIO_BLOCK_STEPS",
        "flag",
        "stored run",
        "stored run",
    ]
    assert origins(found, "run", "runs_dir", "max_updates") == ["flag", "flag", "default"]


def test_a_new_run_has_defaults(tmp_path: Path) -> None:
    found = resolve(["--runs-dir", str(tmp_path), "--no-hints"], {})

    assert origins(found, "gamma", "seed", "hints") == ["default", "default", "flag"]
    assert not found.args.settings.diagnosis.hints


def test_the_stored_run_is_found_by_variables_too(stored: list[str]) -> None:
    environment = {"RUN_NAME": "kept", "MARIO_RUNS_DIR": stored[1]}

    assert parse_local([], environment).settings.learner.batch_size == 17
    assert parse_local(["--run", "other"], environment).settings.learner.batch_size == 64


@pytest.mark.parametrize("environment", [{"MARIO_FRESH": "1"}, {"MARIO_RESUME": "none"}])
def test_a_run_that_begins_anew_by_a_variable_has_no_stored_settings(
    stored: list[str], environment: dict[str, str]
) -> None:
    assert parse_local(stored, environment).settings.learner.batch_size == 64
    assert parse_local([*stored, "--no-fresh", "--resume", "auto"], environment).resume == "auto"


def test_flags_of_the_launcher_have_variables(tmp_path: Path) -> None:
    words = preset(tmp_path, "[actor]\nactors = 4\n")

    args = parse_local(["--dry-run"], {"MARIO_PRESET": words[1], "MARIO_PLAIN": "yes"})

    assert args.settings.actor.actors == 4
    assert args.plain
    assert parse_local(["--no-plain"], {"MARIO_PLAIN": "yes"}).plain is False


def test_bootstrap_goes_over_another_preset_and_says_so() -> None:
    found = resolve(["--preset", "laptop", "--auto-bootstrap-frames", "8"], {"BOOTSTRAP": "1"})

    settings = found.args.settings
    assert settings.actor.envs_per_actor == 8
    assert settings.shaping.reward_distance_weight == 0.12
    assert settings.scripts.auto_bootstrap_frames == 8
    assert found.notes == ("BOOTSTRAP=1: the preset bootstrap goes over laptop",)


def test_bootstrap_alone_is_the_preset() -> None:
    by_variable, by_flag = resolve([], {"BOOTSTRAP": "1"}), resolve(["--preset", "bootstrap"], {})

    assert by_variable.args.settings == by_flag.args.settings
    assert by_variable.origins == by_flag.origins
    assert resolve(["--preset", "bootstrap"], {"BOOTSTRAP": "1"}).notes == ()


def test_what_the_environment_gave_is_told_and_what_it_meant_to_give_too() -> None:
    found = resolve([], {"RUN_NAME": "r", "MARIO_PLAIN": "1", "MARIO_ACTROS": "3", "HOME": "/"})

    assert found.notes == (
        "from the environment: RUN_NAME, MARIO_PLAIN (--dry-run shows every value)",
    )
    assert found.warnings == ("MARIO_ACTROS is not read by anything; did you mean MARIO_ACTORS?",)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"RUN_NAME": "a b"}, "RUN_NAME: run name 'a b' is not usable"),
        ({"MARIO_CAPACITY": "9"}, "MARIO_CAPACITY: --capacity must be at least --learning-starts"),
        ({"SCRIPTED_SEQUENCE": "JUMP:x"}, "SCRIPTED_SEQUENCE: --scripted-sequence: at character 1"),
        ({"ACTION_TYPE": "all"}, "ACTION_TYPE: --actions must be one of"),
        ({"MARIO_PRESET": "desktop"}, "MARIO_PRESET: --preset must be one of"),
        ({"TOTAL_UPDATES": "-1"}, "TOTAL_UPDATES: --max-updates must be at least 0"),
    ],
)
def test_a_value_that_the_settings_refuse_names_its_variable(
    environment: dict[str, str], expected: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve([], environment)

    assert str(caught.value).startswith(expected)


def test_variables_are_checked_together() -> None:
    both = {"MARIO_ADAPTIVE_RATIO_LOW": "0.7", "MARIO_ADAPTIVE_RATIO_HIGH": "0.9"}

    assert parse_local([], both).settings.adaptive.adaptive_ratio_low == 0.7


def test_what_the_launcher_changes_by_itself_is_noted() -> None:
    before = Settings()
    after = replace(before, run=replace(before.run, device="cpu"))

    noted = note_changes({"device": "flag", "seed": "default"}, before, after, "settled here")

    assert noted == {"device": "flag, settled here", "seed": "default"}


def test_a_run_can_be_started_from_flags_alone() -> None:
    environment = {"RUN_NAME": "r", "BOOTSTRAP": "1", "MARIO_ACTORS": "3", "AUTO_MEM": "1"}

    assert without_settings({**environment, "MARIO_ALLOW_CPU_AUTO": "1", "HOME": "/"}) == {
        "MARIO_ALLOW_CPU_AUTO": "1",
        "HOME": "/",
    }
