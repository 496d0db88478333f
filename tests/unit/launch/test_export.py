from __future__ import annotations

import errno
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

from common.checkpoint_files import MANIFEST_NAME, PLAYABLE_FILES, load_checkpoint
from common.config import Settings
from common.errors import ConfigError
from common.jsonl import JsonlWriter, read_jsonl
from common.models import find_model, load_network
from common.networks import build_network
from common.resume import mark_best
from common.settings_files import settings_to_dict
from common.state_dicts import plain_state_dict
from launch.export import export, main
from tests.checkpoint_factory import add_average, write_playable_checkpoint

SETTINGS = replace(Settings(), env=replace(Settings().env, game="corridor", size=16, stack=2))
SETTINGS = replace(SETTINGS, run=replace(SETTINGS.run, runs_dir="/home/someone/runs"))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    root = tmp_path / "run"
    for steps in (10, 20):
        torch.manual_seed(steps)
        tensors = plain_state_dict(build_network("small", SETTINGS.spec, 32))
        write_playable_checkpoint(root / "checkpoints", steps, tensors, updates=steps * 2)
    mark_best(root / "checkpoints", "00000000010")
    (root / "config.json").write_text(
        json.dumps({"settings": settings_to_dict(SETTINGS), "git_commit": "abc", "secret": 1})
    )
    for name, key in (("eval.jsonl", "checkpoint"), ("traces/evaluator-0.jsonl", "agent_steps")):
        writer = JsonlWriter(root / name)
        for steps in (10, 20):
            writer.write({key: f"{steps:011}" if key == "checkpoint" else steps})
        writer.close()
    return root


def test_the_model_plays_as_the_run_does(run: Path, tmp_path: Path) -> None:
    folder = export(run, tmp_path / "model", "best")

    place = find_model(folder)
    network, updates = load_network(place)
    original = load_checkpoint(run / "checkpoints" / "00000000010")
    assert (place.agent_steps, updates) == (10, 20)
    for name, tensor in plain_state_dict(network).items():
        assert torch.equal(tensor, original.tensors["network"][name])
    assert asdict(place.settings.env) == asdict(SETTINGS.env)


def test_the_average_is_what_is_published(run: Path, tmp_path: Path) -> None:
    checkpoint = run / "checkpoints" / "00000000010"
    average = {name: 2 * t for name, t in load_checkpoint(checkpoint).tensors["network"].items()}
    add_average(checkpoint, 10, average)

    network, _ = load_network(find_model(export(run, tmp_path / "model", "best")), "online")

    for name, tensor in plain_state_dict(network).items():
        assert torch.equal(tensor, average[name])


def test_nothing_more_than_needed_is_copied(run: Path, tmp_path: Path) -> None:
    folder = export(run, tmp_path / "model", "best")

    files = {file.name for file in (folder / "checkpoints" / "00000000010").iterdir()}
    assert files == {*PLAYABLE_FILES, MANIFEST_NAME}
    assert "someone" not in (folder / "config.json").read_text()
    assert "secret" not in (folder / "config.json").read_text()
    assert [line["checkpoint"] for line in read_jsonl(folder / "eval.jsonl")] == ["00000000010"]
    traces = read_jsonl(folder / "traces" / "evaluator-0.jsonl")
    assert [line["agent_steps"] for line in traces] == [10]


def test_a_checkpoint_is_taken_with_the_settings_of_its_run(run: Path, tmp_path: Path) -> None:
    folder = export(run / "checkpoints" / "00000000020", tmp_path / "model", "best")

    assert find_model(folder).agent_steps == 20
    assert [line["checkpoint"] for line in read_jsonl(folder / "eval.jsonl")] == ["00000000020"]


def test_a_model_that_could_not_be_finished_leaves_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("launch.export.write_config", full_disk)

    with pytest.raises(OSError, match="No space"):
        export(run, tmp_path / "models" / "one", "best")

    assert list(tmp_path.glob("models/*")) == []


def test_nothing_is_overwritten_and_nothing_is_made_of_nothing(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="exists"):
        export(run, run, "best")
    assert main([str(tmp_path / "none"), "-o", str(tmp_path / "model")]) == 2
    assert main([str(run)]) == 2
    assert not (tmp_path / "model").exists()
