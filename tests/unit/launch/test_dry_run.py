from __future__ import annotations

import tomllib
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from common.config import Settings
from common.run_paths import RunPaths
from common.settings_files import settings_from_dict
from launch.dry_run import StartPlan, show_plan
from launch.layers import Layers
from launch.local import main
from tests.checkpoint_factory import write_small_checkpoint

DryRun = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dry_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> DryRun:
    """Exit code, output and what was said on the way."""
    monkeypatch.setattr("os.umask", lambda _: 0)

    def start(*words: str, **environment: str) -> tuple[int, str, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        code = main(["--dry-run", "--runs-dir", str(tmp_path / "runs"), "--device", "cpu", *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return start


def test_every_value_is_shown_with_its_origin_and_nothing_is_written(
    dry_run: DryRun, tmp_path: Path
) -> None:
    code, output, _ = dry_run(
        "--preset", "laptop", "--game", "corridor", "--seed", "5", REWARD_SCALE_START="0.5"
    )

    assert code == 0
    assert 'device = "cpu"  # flag' in output
    assert "seed = 5  # flag" in output
    assert "envs_per_actor = 8  # preset laptop" in output
    assert "reward_scale_start = 0.5  # environment REWARD_SCALE_START" in output
    assert "gamma = 0.95  # default" in output
    assert list(tmp_path.iterdir()) == []


def test_without_a_terminal_the_settings_are_toml(dry_run: DryRun) -> None:
    _, output, _ = dry_run("--game", "corridor", "--actors", "3", "--batch-size", "8")

    settings = settings_from_dict(tomllib.loads(output), Settings(), "output")

    assert (settings.actor.actors, settings.learner.batch_size) == (3, 8)
    assert settings.env.game == "corridor"


def test_the_commands_are_those_of_a_start(dry_run: DryRun, tmp_path: Path) -> None:
    _, output, _ = dry_run("--game", "corridor", "--actors", "2", "--run", "r", "--evaluators", "0")

    config = tmp_path / "runs" / "r" / "config.json"
    lines = output.partition("# would start, in this order:\n")[2].splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "# replay_server-0",
        "# learner-0",
        "# actor-0",
        "# actor-1",
    ]
    assert lines[1].endswith(f"-m learner --config {config} --resume none")


def test_every_replay_server_is_told_which_one_it_is(dry_run: DryRun) -> None:
    _, output, _ = dry_run("--game", "corridor", "--actors", "2", "--replay-shards", "3")

    lines = output.partition("# would start, in this order:\n")[2].splitlines()
    for index in range(3):
        assert lines[index].startswith(f"# replay_server-{index}: ")
        assert f" --index {index} " in lines[index]
    assert lines[3].startswith("# learner-0: ")


def test_what_the_machine_decides_is_settled_and_told_apart(dry_run: DryRun) -> None:
    _, output, said = dry_run("--core", "nes_py", MARIO_ALLOW_CPU_AUTO="1", MARIO_ACTROS="3")

    assert "core = " in output
    assert "WARNING: MARIO_ACTROS is not read by anything" in said
    assert "WARNING" not in output


def test_a_run_that_would_go_on_names_its_checkpoint(dry_run: DryRun, tmp_path: Path) -> None:
    checkpoint = write_small_checkpoint(tmp_path / "runs" / "r" / "checkpoints", 12)
    before = sorted((tmp_path / "runs").rglob("*"))

    code, output, said = dry_run("--game", "corridor", "--run", "r")
    fresh_code, fresh, fresh_said = dry_run("--game", "corridor", "--run", "r", "--fresh")

    assert (code, fresh_code) == (0, 0)
    assert f"going on from {checkpoint} at 12 agent steps" in said
    assert f"--resume {checkpoint}" in output
    assert "--resume none" in fresh
    assert "would be moved aside" in fresh_said
    assert sorted((tmp_path / "runs").rglob("*")) == before


def test_a_start_that_would_be_refused_is(dry_run: DryRun) -> None:
    code, output, said = dry_run("--game", "corridor", MARIO_ACTORS="many")

    assert (code, output) == (2, "")
    assert said == ("python launch/local.py: MARIO_ACTORS: expected a whole number, got 'many'\n")


def test_in_a_terminal_it_is_a_table(tmp_path: Path) -> None:
    layers, output = Layers(Settings().run), StringIO()
    plan = StartPlan(
        settings=layers.settings,
        origins=layers.origins,
        paths=RunPaths(tmp_path),
        resume="none",
        lockstep=True,
    )

    show_plan(plan, Console(file=output, force_terminal=True, color_system=None, width=100))

    (row,) = [line for line in output.getvalue().splitlines() if " batch_size " in line]
    assert row.split() == ["learner", "batch_size", "64", "default"]
    assert "everything in this process (--lockstep)" in output.getvalue()
