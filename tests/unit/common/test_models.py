from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from common.checkpoint_files import verify_checkpoint
from common.config import Settings
from common.errors import CheckpointCorrupt, CheckpointMissing, ConfigError
from common.models import find_model, load_network
from common.networks import build_network
from common.resume import mark_best
from common.settings_files import settings_to_dict
from common.state_dicts import plain_state_dict
from tests.checkpoint_factory import (
    add_average,
    damage,
    seal_checkpoint,
    write_playable_checkpoint,
)

SETTINGS = Settings()
SETTINGS = replace(
    SETTINGS,
    env=replace(SETTINGS.env, game="corridor", size=16, stack=2),
    learner=replace(SETTINGS.learner, num_quantiles=2),
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with checkpoints at 10, 20 and 30 agent steps, of which 20 is the best."""
    root = tmp_path / "run"
    for steps in (10, 20, 30):
        torch.manual_seed(steps)
        network = build_network("small", SETTINGS.spec, 2)
        tensors = plain_state_dict(network)
        write_playable_checkpoint(root / "checkpoints", steps, tensors, updates=steps * 2)
    mark_best(root / "checkpoints", "00000000020")
    (root / "config.json").write_text(json.dumps({"settings": settings_to_dict(SETTINGS)}))
    return root


def test_of_a_run_the_best_is_taken_or_the_latest_where_asked(run: Path) -> None:
    assert find_model(run).agent_steps == 20
    assert find_model(run, "latest").agent_steps == 30


def test_a_run_without_a_best_gives_its_latest(run: Path) -> None:
    (run / "checkpoints" / "best").unlink()

    assert find_model(run).agent_steps == 30


def test_a_damaged_best_gives_way_to_the_latest(run: Path) -> None:
    damage(run / "checkpoints" / "00000000020")

    assert find_model(run).agent_steps == 30


def test_a_checkpoint_is_taken_as_it_is_with_the_settings_of_its_run(run: Path) -> None:
    place = find_model(run / "checkpoints" / "00000000010")

    assert place.agent_steps == 10
    assert place.settings.learner.num_quantiles == 2


def test_the_network_is_the_one_that_was_saved(run: Path) -> None:
    torch.manual_seed(30)
    saved = build_network("small", SETTINGS.spec, 2)

    network, updates = load_network(find_model(run, "latest"))

    assert updates == 60
    for name, tensor in plain_state_dict(saved).items():
        assert torch.equal(plain_state_dict(network)[name], tensor)
    assert not network.training


def test_the_average_is_played_where_there_is_one(run: Path) -> None:
    checkpoint = run / "checkpoints" / "00000000030"
    online, _ = load_network(find_model(checkpoint))
    average = {name: tensor + 1 for name, tensor in plain_state_dict(online).items()}
    add_average(checkpoint, 30, average)

    played, _ = load_network(find_model(checkpoint))
    trained, _ = load_network(find_model(checkpoint), "online")

    for name, tensor in plain_state_dict(online).items():
        assert torch.equal(plain_state_dict(played)[name], tensor + 1)
        assert torch.equal(plain_state_dict(trained)[name], tensor)


def test_a_model_without_an_optimizer_can_be_played_but_not_resumed(run: Path) -> None:
    checkpoint = run / "checkpoints" / "00000000030"
    for name in ("target", "optimizer"):
        (checkpoint / f"{name}.safetensors").unlink()
    seal_checkpoint(checkpoint, 30)

    network, _ = load_network(find_model(checkpoint))

    assert sum(1 for _ in network.parameters()) > 0
    with pytest.raises(CheckpointCorrupt, match="optimizer"):
        verify_checkpoint(checkpoint)


def test_a_checkpoint_may_be_named_from_where_it_lies(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run / "checkpoints")
    assert find_model(Path("00000000010")).agent_steps == 10
    monkeypatch.chdir(run / "checkpoints" / "00000000010")
    assert find_model(Path()).root == run.resolve()
    assert find_model(run / "checkpoints").agent_steps == 20


def test_what_is_missing_is_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="does not exist"):
        find_model(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointMissing, match="holds no checkpoint"):
        find_model(tmp_path / "empty")
    alone = shutil.copytree(run / "checkpoints" / "00000000010", tmp_path / "alone" / "model")
    with pytest.raises(ConfigError, match=r"has no config\.json"):
        find_model(alone)


def test_a_run_with_nothing_but_damage_says_so(run: Path) -> None:
    for checkpoint in (run / "checkpoints").glob("0*"):
        damage(checkpoint)

    with pytest.raises(CheckpointMissing, match="damaged"):
        find_model(run)
