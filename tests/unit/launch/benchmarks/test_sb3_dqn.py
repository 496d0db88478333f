from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from common.config import Settings
from common.networks import build_network
from common.quantiles import q_values
from launch.benchmarks import sb3_dqn

JOB = {
    "core": "native",
    "our_network": False,
    "envs": 8,
    "seconds": 1.0,
    "batch_size": 64,
    "samples_per_insert": 4.0,
    "learning_starts": 10,
    "capacity": 100,
}


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What Stable-Baselines3, which is not installed for tests, would be asked for."""
    heard: dict[str, Any] = {}

    def build(_policy: str, _envs: object, **settings: object) -> object:
        heard.update(settings)
        return SimpleNamespace(learn=lambda **_: None)

    envs = SimpleNamespace(close=lambda: None)
    modules = {
        "stable_baselines3": SimpleNamespace(DQN=build),
        "stable_baselines3.common.vec_env": SimpleNamespace(SubprocVecEnv=lambda _makers: envs),
    }
    monkeypatch.setattr(sb3_dqn, "import_module", modules.__getitem__)
    return heard


def test_the_reference_chooses_its_actions_with_its_network(given: dict[str, Any]) -> None:
    sb3_dqn.train(JOB)

    assert given["exploration_initial_eps"] == given["exploration_final_eps"] == 0.05


def test_the_reference_learns_as_much_per_agent_step(given: dict[str, Any]) -> None:
    sb3_dqn.train(JOB)

    steps = given["train_freq"] * JOB["envs"]
    assert given["gradient_steps"] * given["batch_size"] / steps == JOB["samples_per_insert"]


def test_our_network_says_in_it_what_it_says_in_ours(given: dict[str, Any]) -> None:
    sb3_dqn.train({**JOB, "our_network": True})
    spec = Settings().spec
    twin = given["policy_kwargs"]["features_extractor_class"](None)
    ours = build_network("nature", spec)
    ours.load_state_dict(twin.network.state_dict())
    seen = torch.randint(0, 256, (2, spec.stack, spec.height, spec.width), dtype=torch.uint8)

    told = twin(seen.float() / 255.0)

    expected = q_values(ours(seen, torch.full((2,), spec.no_action)))
    assert torch.allclose(told, expected, atol=1e-5)
    assert told.shape == (2, twin.features_dim)
    assert given["policy_kwargs"]["net_arch"] == []
