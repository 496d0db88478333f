from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from common.errors import ExitCode
from launch.backfill_global_step import main


def write_old(
    folder: Path, *, weights: object = None, name: str = "a3c_world1_stage1_0001000", **state: Any
) -> Path:
    """Metadata as the earlier trainer wrote it, with the weights beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    content = {
        "version": 1,
        "action_type": "complex",
        "vector_env": {"num_envs": 4, "asynchronous": False},
        "save_state": {"global_step": 0, "type": "checkpoint", **state},
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False), encoding="utf-8")
    torch.save(weights or {"model": {"w": torch.ones(2)}}, path.with_suffix(".pt"))
    return path


def read(path: Path) -> dict[str, Any]:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_the_step_follows_from_the_updates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_old(tmp_path / "run01" / "deep", global_update=250)
    before = path.read_bytes()

    assert run(tmp_path) == 0

    content = read(path)
    assert content["save_state"] == {
        "global_step": 250 * 4 * 64,
        "global_update": 250,
        "type": "checkpoint",
    }
    assert content["action_type"] == "complex"
    source = content["reconstructed_step_source"]
    assert (source["global_update"], source["num_envs"], source["rollout_steps"]) == (250, 4, 64)
    assert source["global_update_from"] == "metadata"
    assert source["rollout_steps_from"] == "--assume-rollout-steps"
    assert path.with_name(path.name + ".bak").read_bytes() == before
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("[migrate] ") for line in lines)
    assert "global_step 0 -> 64000 (250 updates x 4 environments x 64 rollout steps" in lines[0]
    assert lines[-1] == "[migrate] 1 files: 1 changed"


@pytest.mark.parametrize("told", [{}, {"global_update": 0}])
def test_updates_that_the_metadata_lacks_are_read_from_the_weights(
    tmp_path: Path, told: dict[str, Any]
) -> None:
    path = write_old(tmp_path, weights={"global_update": 30, "global_step": 7}, **told)

    assert run(tmp_path, "--assume-rollout-steps", 128) == 0

    assert read(path)["save_state"]["global_step"] == 30 * 4 * 128
    assert read(path)["save_state"]["global_update"] == 30
    assert read(path)["reconstructed_step_source"]["global_update_from"] == ".pt"


def test_a_dry_run_says_the_same_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_old(tmp_path, global_update=10)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*")}

    assert run(tmp_path, "--dry-run") == 0

    assert {file: file.read_bytes() for file in tmp_path.rglob("*")} == before
    shown = capsys.readouterr().out
    assert f"[migrate] {path}: would be global_step 0 -> 2560" in shown
    assert shown.endswith("(dry run: nothing was written)\n")


def test_a_second_time_changes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_old(tmp_path, global_update=10)
    first = path.with_name(path.name + ".bak")

    assert run(tmp_path) == 0
    once, kept = path.read_bytes(), first.read_bytes()
    assert run(tmp_path, "--assume-rollout-steps", 32) == 0

    assert path.read_bytes() == once
    assert first.read_bytes() == kept
    assert "left as it is: global_step is 2560" in capsys.readouterr().out


def test_a_lower_step_is_replaced_only_when_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    low = write_old(tmp_path / "low", global_update=10, global_step=5)
    high = write_old(tmp_path / "high", global_update=10, global_step=99_999)

    assert run(tmp_path) == 0
    assert "global_step is 5 (--update-if-lower replaces it)" in capsys.readouterr().out
    assert read(low)["save_state"]["global_step"] == 5
    assert run(tmp_path, "--update-if-lower") == 0

    assert read(low)["save_state"]["global_step"] == 2560
    assert read(high)["save_state"]["global_step"] == 99_999
    original = low.with_name(low.name + ".bak")
    assert read(original)["save_state"]["global_step"] == 5


def test_rollout_steps_that_are_told_count_more_than_assumed_ones(tmp_path: Path) -> None:
    path = write_old(tmp_path, global_update=10)
    path.write_text(json.dumps({**read(path), "rollout_steps": 20}))

    assert run(tmp_path) == 0

    assert read(path)["save_state"]["global_step"] == 10 * 4 * 20
    assert read(path)["reconstructed_step_source"]["rollout_steps_from"] == "metadata"


class Foreign:
    """What only a pickle reader that runs code could bring back."""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "it is not JSON"),
        ("[1]", "expected an object, got list"),
        ('{"save_state": 3}', "expected an object as save_state, got 3"),
        ('{"save_state": {"global_update": "ten"}}', "expected a number as global_update"),
        ('{"save_state": {"global_update": 10}}', "expected num_envs of at least 1"),
        ('{"save_state": {"global_update": true}}', "expected a number as global_update"),
        ('{"global_update": 4611686018427387904, "num_envs": 9}', "cannot be true"),
    ],
)
def test_a_broken_file_is_reported_and_the_others_are_repaired(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    broken, good = write_old(tmp_path / "a"), write_old(tmp_path / "b", global_update=10)
    broken.write_text(text)

    assert run(tmp_path) == 1

    assert words in capsys.readouterr().out
    assert broken.read_text() == text
    assert not broken.with_name(broken.name + ".bak").exists()
    assert read(good)["save_state"]["global_step"] == 2560


def test_weights_that_could_run_code_are_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_old(tmp_path, weights={"global_update": 10, "config": Foreign()})

    assert run(tmp_path) == 1

    assert "a3c_world1_stage1_0001000.pt cannot be read as plain weights" in capsys.readouterr().out


@pytest.mark.parametrize("damage", [b"", b"no weights at all"])
def test_damaged_weights_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: bytes
) -> None:
    write_old(tmp_path).with_suffix(".pt").write_bytes(damage)

    assert run(tmp_path) == 1
    assert "cannot be read as plain weights" in capsys.readouterr().out


def test_missing_weights_are_reported_unless_nothing_is_asked_of_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    silent, told = write_old(tmp_path / "a"), write_old(tmp_path / "b", global_update=0)
    for path in (silent, told):
        path.with_suffix(".pt").unlink()

    assert run(tmp_path) == 1

    shown = capsys.readouterr().out
    assert "it tells no global_update, and a3c_world1_stage1_0001000.pt is not there" in shown
    assert "it was saved before the first update" in shown


def test_files_of_others_are_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text('{"save_state": {"global_update": 3}}')
    (tmp_path / "notes.json").write_text("no JSON")

    assert run(tmp_path) == 0
    assert capsys.readouterr().out == "[migrate] 0 files: nothing to do\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--assume-rollout-steps", "0"], "--assume-rollout-steps must be between 1"),
        (["/nonexistent/folder"], "expected a folder of old checkpoints"),
        ([], "expected a folder of old checkpoints"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(words)
    except SystemExit as error:
        code = int(error.code or 0)

    assert code == ExitCode.CONFIGURATION
    assert said in capsys.readouterr().err
