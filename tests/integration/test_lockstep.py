"""The whole system in one thread: equal seeds give equal bits, a resumed run counts on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from common.checkpoint_files import CheckpointData
from common.config import Settings
from common.jsonl import read_jsonl
from common.run_paths import RunPaths
from launch.lockstep import Lockstep
from tests.run_factory import corridor_settings
from tests.run_state import counters, newest, tensor_hash

pytestmark = pytest.mark.integration

AGENT_STEPS = 900


def settings_of(folder: Path, run: Mapping[str, object]) -> Settings:
    return corridor_settings(folder, {"run": {"max_agent_steps": AGENT_STEPS, **run}})


def train(settings: Settings, resume: Path | None = None) -> CheckpointData:
    Lockstep(settings, resume=resume).run(lambda: False, lambda: None)
    return newest(settings)


def test_two_runs_with_one_seed_are_equal_bit_by_bit_and_another_seed_differs(
    tmp_path: Path,
) -> None:
    first = train(settings_of(tmp_path / "a", {"seed": 5}))
    second = train(settings_of(tmp_path / "b", {"seed": 5, "run": "twin"}))
    other = train(settings_of(tmp_path / "c", {"seed": 6}))

    assert counters(first)["updates"] > 50
    assert counters(first) == counters(second)
    assert tensor_hash(first) == tensor_hash(second)
    assert tensor_hash(first) != tensor_hash(other)


def test_shaping_and_scripts_change_what_is_learned_and_follow_from_the_seed(
    tmp_path: Path,
) -> None:
    tools: Mapping[str, Mapping[str, object]] = {
        "run": {"max_agent_steps": AGENT_STEPS},
        "shaping": {"reward_distance_weight": 0.5},
        "scripts": {
            "probe_forward_actions": 4,
            "scripted_forward_frames": 8,
            "scripted_to_replay": False,
            "auto_bootstrap_threshold": 4,
            "auto_bootstrap_frames": 8,
        },
    }
    first, second = (train(corridor_settings(tmp_path / name, tools)) for name in "ab")
    plain = train(settings_of(tmp_path / "c", {}))

    assert counters(first)["updates"] > 50
    assert tensor_hash(first) == tensor_hash(second)
    assert tensor_hash(first) != tensor_hash(plain)


def test_adaptive_runs_with_one_seed_are_equal_and_differ_from_one_that_does_not_adapt(
    tmp_path: Path,
) -> None:
    always_more_help = {
        "adaptive": True,
        "adaptive_window_agent_steps": 200,
        "adaptive_ratio_low": 0.9,
        "adaptive_ratio_high": 0.95,
    }
    hashes = []
    for name, adaptive in (("a", always_more_help), ("b", always_more_help), ("c", {})):
        changes: dict[str, Mapping[str, object]] = {
            "run": {"max_agent_steps": AGENT_STEPS},
            "adaptive": adaptive,
        }
        hashes.append(tensor_hash(train(corridor_settings(tmp_path / name, changes))))

    assert hashes[0] == hashes[1] != hashes[2]


def test_a_resumed_run_counts_on_and_earns_no_burst_of_updates(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, {})
    before = train(settings)

    longer = settings_of(tmp_path, {"max_agent_steps": AGENT_STEPS + 600})
    after = train(longer, resume=before.path)

    old, new = counters(before), counters(after)
    assert old["agent_steps"] >= AGENT_STEPS
    assert new["agent_steps"] >= AGENT_STEPS + 600
    assert new["episodes"] > old["episodes"]
    steps = [record["global_step"] for record in read_jsonl(RunPaths.of(settings.run).metrics)]
    assert steps == sorted(steps, key=lambda step: int(str(step)))
    assert_balanced(settings, old["agent_steps"], old["updates"])
    played, made = (new[name] - old[name] for name in ("agent_steps", "updates"))
    assert_balanced(settings, played, made)


def assert_balanced(settings: Settings, agent_steps: int, updates: int) -> None:
    """One life of a replay server: samples follow inserted steps within the slack."""
    replay, batch = settings.replay, settings.learner.batch_size
    earned = (agent_steps - replay.learning_starts) * replay.samples_per_insert
    slack = replay.balance_slack_agent_steps * replay.samples_per_insert
    assert abs(updates * batch - earned) <= slack + batch * (settings.learner.prefetch_batches + 1)
