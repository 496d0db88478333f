"""Every bound of every setting is refused with its flag named."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import pytest

from common.config import (
    ENDPOINT_NAMES,
    ActorSettings,
    AdaptiveSettings,
    CurriculumSettings,
    DiagnosisSettings,
    EndpointSettings,
    EnvSettings,
    EvaluationSettings,
    LearnerSettings,
    ReplaySettings,
    RunSettings,
    ScriptSettings,
    Settings,
    ShapingSettings,
)
from common.errors import ConfigError, ExitCode
from common.game import ACTION_SETS

NAN, INF = math.nan, math.inf
REFUSED: dict[type, dict[str, list[Any]]] = {
    RunSettings: {
        "run": ["", "..", "../../etc", "a/b", "-dash", ".hidden", "a b", "a..b", "x" * 65, "a\n"],
        "seed": [-1],
        "max_agent_steps": [-1],
        "max_updates": [-1],
        "max_minutes": [-0.1, NAN, INF],
        "metrics_interval_s": [0, -1, NAN, INF, 604_801],
        "patience": [-1, NAN, INF],
    },
    EnvSettings: {
        "stage": ["", "0-1", "9-1", "1-5", "1-1 ", "random"],
        "stages": ["1-1,9-9", "everything"],
        "core": ["", "nes-py", "NATIVE"],
        "actions": ["", "all", "SIMPLE"],
        "frame_skip": [0, -4],
        "size": [0, 7, 241],
        "stack": [0, -1, 17],
        "noop_max": [-1],
        "sticky": [-0.1, 1.0, NAN],
        "max_episode_frames": [0],
        "stagnation_seconds": [-1, NAN, INF],
        "flag_bonus": [NAN, INF, -INF, 1001],
        "reward_scale": [0, -1, NAN, INF],
        "env_deadline_s": [-1, NAN, INF, 1e300, 604_801],
        "env_start_delay_s": [-1, NAN, INF, 604_801],
    },
    ActorSettings: {
        "actors": [0, -1, 10_001, 10**9],
        "envs_per_actor": [0, 257],
        "block_steps": [0, 1025],
        "send_window": [0, 65],
        "epsilon_anneal_agent_steps": [0, -1],
        "epsilon_warmup_agent_steps": [0, -1],
        "min_actors": [-1, 0, 9],
        "max_weight_age_s": [-1, NAN, INF, 604_801],
        "frontier_share": [-0.1, 0.96, NAN],
    },
    CurriculumSettings: {
        "stage_floor": [-0.1, 1.1, NAN],
        "stage_weights": ["1-1", "1-1:x", "9-9:1", "1-1:-1", "1-1:nan"],
        "unlock_clear_rate": [-0.1, 1.1],
    },
    EvaluationSettings: {
        "evaluators": [-1, 2],
        "eval_interval_agent_steps": [0, -1],
        "eval_episodes": [0, 100_001],
        "eval_films": [-1, 10_001],
        "eval_noop_max": [-1, 10_001],
    },
    ReplaySettings: {
        "capacity": [-1],
        "replay_shards": [0, -1, 65],
        "samples_per_insert": [0, -4, NAN, INF],
        "learning_starts": [0],
        "balance_slack_agent_steps": [-1],
        "per_alpha": [-0.1, 1.1, NAN],
        "per_beta": [-0.1, 1.1, NAN],
        "per_beta_anneal_agent_steps": [0],
        "per_sample_interval": [0],
        "n_step": [0, 65],
        "gamma": [0, 1, 1.5, -0.5, NAN],
    },
    LearnerSettings: {
        "num_quantiles": [0, 513],
        "batch_size": [0, 65_537],
        "learning_rate": [0, -1e-4, NAN, INF],
        "learning_rate_final": [0, NAN, INF],
        "learning_rate_anneal_agent_steps": [0],
        "adam_epsilon": [0, NAN, INF],
        "max_grad_norm": [0, NAN, INF],
        "target_sync_interval_updates": [0],
        "average_decay": [-0.1, 1, NAN],
        "publish_interval_updates": [0],
        "prefetch_batches": [0, 17],
        "learner_threads": [-1],
        "checkpoint_interval_s": [0, NAN, INF],
        "keep_checkpoints": [0],
    },
    ShapingSettings: {
        "reward_score_weight": [NAN, INF, -10_001],
        "reward_distance_weight": [-0.1, 101, NAN],
        "reward_scale_start": [-1, NAN, INF],
        "reward_scale_final": [-1, NAN, INF],
        "reward_scale_anneal_steps": [-1],
        "ram_x_high_addr": ["", "x", "0x800", "-1"],
        "ram_x_low_addr": ["", "x", "0x800", "-1"],
        "ram_x_parse_fail_limit": [0],
    },
    ScriptSettings: {
        "forward_action_id": [-2, 256],
        "probe_forward_actions": [-1, 2_001],
        "scripted_forward_frames": [-1, 20_001],
        "scripted_episodes": [-1],
        "auto_bootstrap_threshold": [-1],
        "auto_bootstrap_frames": [0, 20_001],
    },
    AdaptiveSettings: {
        "adaptive_window_agent_steps": [0],
        "adaptive_ratio_low": [-0.1, 0.6, NAN],
        "adaptive_ratio_high": [1.1, NAN],
        **{
            f"adaptive_{name}_{end}": values
            for name in ("distance_weight", "exploration_scale", "lr_scale")
            for end, values in (("min", [-1, 101, NAN]), ("max", [-1, 101, NAN]), ("step", [0]))
        },
    },
    DiagnosisSettings: {
        "hint_interval_s": [0, NAN, INF],
        "slow_step_trace_threshold": [-1, NAN, INF],
        "slow_step_trace_window": [0, NAN, INF],
        "slow_step_trace_count": [0, 1_001],
    },
    EndpointSettings: {
        name: ["", "5601", "udp://127.0.0.1:1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:70000"]
        for name in ENDPOINT_NAMES
    },
}
CASES = [
    pytest.param(kind, name, value, id=f"{name}={value!r}")
    for kind, names in REFUSED.items()
    for name, values in names.items()
    for value in values
]
CHECKED_ELSEWHERE = {"keys_dir", "runs_dir", "device", "scripted_sequence"}
"""By common/keys.py, common/run_paths.py, common/devices.py, and `Settings` with its actions."""


@pytest.mark.parametrize(("kind", "name", "value"), CASES)
def test_a_value_out_of_bounds_is_refused_with_its_flag(kind: type, name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match="--" + name.replace("_", "-")) as caught:
        kind(**{name: value})

    assert caught.value.exit_code is ExitCode.CONFIGURATION


@pytest.mark.parametrize("kind", REFUSED)
def test_every_number_and_text_has_a_refused_value_above(kind: type) -> None:
    free = {
        item.name
        for item in fields(kind)
        if item.type == "bool" or str(item.type).startswith("Literal")
    }

    names = {item.name for item in fields(kind)}
    assert names - free - CHECKED_ELSEWHERE == set(REFUSED[kind])


def test_defaults_are_valid() -> None:
    Settings()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (EnvSettings, {"size": 8}),
        (EnvSettings, {"size": 240, "stack": 16}),
        (ActorSettings, {"actors": 1, "min_actors": 1}),
        (ActorSettings, {"actors": 10_000, "block_steps": 1024, "send_window": 64}),
        (ReplaySettings, {"per_alpha": 0, "per_beta": 1, "n_step": 64, "gamma": 0.999}),
        (LearnerSettings, {"batch_size": 65_536, "prefetch_batches": 16}),
        (EndpointSettings, {"replay_endpoint": "ipc:///tmp/x/replay"}),
        (EndpointSettings, {"replay_endpoint": "ipc:///tmp/x/a,tcp://127.0.0.1:5601"}),
        (ReplaySettings, {"replay_shards": 64}),
    ],
)
def test_the_bounds_themselves_are_accepted(kind: type, values: dict[str, Any]) -> None:
    kind(**values)


def test_a_capacity_below_the_start_of_learning_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"--capacity .*--learning-starts \(5000\), got 4999"):
        Settings(replay=ReplaySettings(capacity=4_999))


def test_every_replay_endpoint_of_a_list_is_checked() -> None:
    with pytest.raises(ConfigError, match=r"--replay-endpoint: .*0\.0\.0\.0.* not loopback"):
        EndpointSettings(replay_endpoint="tcp://127.0.0.1:5601,tcp://0.0.0.0:5601")


def test_a_batch_larger_than_the_buffer_is_refused() -> None:
    replay = ReplaySettings(capacity=100, learning_starts=100)

    with pytest.raises(ConfigError, match=r"--batch-size .*--capacity \(100\), got 101"):
        Settings(replay=replay, learner=LearnerSettings(batch_size=101))


def test_more_kept_actors_than_actors_are_refused() -> None:
    with pytest.raises(ConfigError, match="--min-actors"):
        ActorSettings(actors=2, min_actors=3)


def test_flags_are_unique_over_the_sections() -> None:
    names = [
        item.name
        for section in fields(Settings)
        for item in fields(getattr(DEFAULTS, section.name))
    ]

    assert len(names) == len(set(names))


DEFAULTS = Settings()


def test_spec_follows_from_the_settings() -> None:
    env = EnvSettings(size=42, stack=2, actions="right_only")
    settings = replace(DEFAULTS, env=env, replay=ReplaySettings(n_step=3))

    spec = settings.spec

    assert (spec.height, spec.width, spec.stack, spec.n_step) == (42, 42, 2, 3)
    assert spec.num_actions == len(ACTION_SETS["right_only"])


def test_the_corridor_has_three_actions() -> None:
    assert replace(DEFAULTS, env=EnvSettings(game="corridor")).spec.num_actions == 3


def test_number_of_environments() -> None:
    assert ActorSettings(actors=3, envs_per_actor=4).num_envs == 12


@pytest.mark.parametrize(
    ("flag", "scripts", "env"),
    [
        ("--forward-action-id", {"forward_action_id": 7}, {}),
        ("--scripted-sequence", {"scripted_sequence": "JUMP:x"}, {}),
        ("--scripted-sequence", {"scripted_sequence": "UP:4"}, {}),
        ("--scripted-sequence", {"scripted_sequence": "RIGHT:4"}, {"game": "corridor"}),
    ],
)
def test_a_script_must_fit_the_game_and_its_actions(
    flag: str, scripts: dict[str, Any], env: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=flag):
        Settings(scripts=ScriptSettings(**scripts), env=EnvSettings(**env))
