"""The trainer's tools through a whole actor: what reaches the replay server and the heartbeat."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from actor.env.corridor import STAY, WALK, CorridorFaults, step_reward
from common.blocks import StepBlock, validate_block
from common.messages import Episode
from tests.actor_scene import ActorScene

LONG_BLOCKS: Mapping[str, object] = {"envs_per_actor": 3, "send_window": 4, "block_steps": 8}


def scene(folder: Path, **sections: Mapping[str, object]) -> ActorScene:
    return ActorScene(folder, {"actor": LONG_BLOCKS, **sections})


def sent(stage: ActorScene) -> list[StepBlock]:
    blocks = [StepBlock(**one.arrays) for one in stage.blocks()]
    for block in blocks:
        validate_block(block, stage.settings.spec)
    return blocks


def items(blocks: list[StepBlock], name: str) -> list[float]:
    return [float(v) for block in blocks for v in getattr(block, name)[: block.num_items]]


def test_scripted_steps_are_played_in_every_environment_and_marked(tmp_path: Path) -> None:
    stage = scene(tmp_path, scripts={"scripted_forward_frames": 8, "scripted_episodes": 2})
    stage.publish()
    stage.play(60)

    blocks = sent(stage)
    marks = [mark for mark in items(blocks, "scripted") if mark]
    assert len(marks) == 3 * 2 * 2
    for block in blocks:
        assert (block.actions[block.scripted == 1] == WALK).all()
    assert stage.beats()[-1]["scripted_steps_total"] == 12


def test_without_a_script_nothing_is_marked(tmp_path: Path) -> None:
    stage = scene(tmp_path)
    stage.publish()
    stage.play(40)

    assert sent(stage)
    assert not any(items(sent(stage), "scripted"))


def test_scripted_steps_can_be_kept_out_of_the_replay(tmp_path: Path) -> None:
    script = {"scripted_forward_frames": 8, "scripted_episodes": 0, "scripted_to_replay": False}
    stage = scene(tmp_path, scripts=script)
    stage.publish()
    stage.play(80)

    blocks = sent(stage)
    assert len(blocks) > 3
    assert not any(items(blocks, "scripted"))
    # Every episode was walked on by two cells first, so no choice was made at the start.
    assert stage.settings.spec.no_action not in items(blocks, "prev_actions")


def test_priorities_of_scripted_steps_are_those_of_the_action_that_was_played(
    tmp_path: Path,
) -> None:
    stage = scene(tmp_path, scripts={"scripted_forward_frames": 8})
    stage.publish()
    seen: list[tuple[int, Any, Any]] = []
    lane = stage.actor._lanes[0]
    original = lane.act

    def act(step: Any) -> Any:
        seen.append((step.action, step.chosen_quantiles, lane.observation.copy()))
        return original(step)

    lane.act = act  # type: ignore[method-assign] # looks at what is about to be played
    previous = stage.settings.spec.no_action
    stage.tick()

    ((action, quantiles, observation),) = seen
    decision = stage.actor._policy.decide(
        observation[None],
        np.array([previous]),
        np.zeros(1, dtype=np.float32),
        forced=[WALK],
    )
    assert action == WALK
    np.testing.assert_allclose(quantiles, decision.chosen_quantiles[0], rtol=1e-4, atol=1e-5)


def test_the_learner_sets_the_distance_weight_and_the_scale_follows_the_run(tmp_path: Path) -> None:
    shaping = {
        "reward_scale_start": 1.0,
        "reward_scale_final": 0.0,
        "reward_scale_anneal_steps": 1_000,
        # What the settings say is only what the learner begins with.
        "reward_distance_weight": 9.0,
    }
    stage = scene(tmp_path, shaping=shaping, scripts={"scripted_forward_frames": 4})
    stage.publish(agent_steps=500, distance_weight=0.25)
    stage.play(40)

    first = next(block for block in sent(stage) if block.scripted[0])
    assert first.rewards[0] == step_reward(0, 1) + 0.25 * 0.5
    beat = stage.beats()[-1]
    assert beat["shaping_last_scale"] == 0.5
    assert float(str(beat["shaping_raw_sum"])) > 0
    assert beat["shaping_scaled_sum"] == pytest.approx(0.5 * float(str(beat["shaping_raw_sum"])))


def test_returns_of_episodes_do_not_depend_on_shaping(tmp_path: Path) -> None:
    returns = []
    for weight in (0.0, 3.0):
        stage = scene(tmp_path / str(weight))
        stage.publish(distance_weight=weight)
        stage.play(60)
        told = [one for one in stage.told() if isinstance(one, Episode)]
        returns.append([one.episode_return for one in told])

    assert returns[0] == returns[1]
    assert len(returns[0]) > 3


def test_who_stands_still_is_led_forward_and_counted(tmp_path: Path) -> None:
    stage = scene(
        tmp_path,
        scripts={
            # They stand still for fifty agent steps, and are then told to stand on for ten.
            "forward_action_id": STAY,
            "scripted_forward_frames": 200,
            "auto_bootstrap_threshold": 10,
            "auto_bootstrap_frames": 40,
        },
    )
    stage.publish()
    stage.play(62)

    beat = stage.beats()[-1]
    assert beat["bootstraps_total"] == 3
    assert beat["scripted_steps_total"] == 3 * (50 + 10)


def test_a_heartbeat_tells_the_figures_in_one_line_of_a_file(tmp_path: Path) -> None:
    stage = scene(tmp_path)
    stage.publish()
    stage.play(10)

    beat = stage.beats()[-1]
    assert {"stagnation_envs", "stagnation_steps_sum", "slow_steps_total"} <= beat.keys()
    assert beat["envs"] == 3
    # Longer lines are not appended in one piece.
    assert len(json.dumps(beat)) < 4_096


def test_slow_steps_leave_their_stacks_and_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = CorridorFaults(agent_step_delay_s=0.004)
    monkeypatch.setattr(CorridorFaults, "from_environment", lambda: faults)
    diagnosis = {"slow_step_trace_threshold": 0.001, "slow_step_trace_count": 2}
    stage = scene(tmp_path, diagnosis=diagnosis)
    stage.publish()
    stage.play(3)

    (trace,) = (tmp_path / "tiny" / "diagnostics").glob("slow_step_trace_*.log")
    assert trace.read_text().startswith("actor-1: an agent step took")
    assert "most recent call first" in trace.read_text()
    assert int(str(stage.beats()[-1]["slow_steps_total"])) >= 6
    stage.actor.close()
