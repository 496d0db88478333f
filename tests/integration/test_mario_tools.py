"""Shaping, scripts and the probe on the real emulator: the native core, or nes_py without it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from actor.env.mario_env import MarioEnv
from actor.forward import ForwardProbe
from actor.gains import GroundSource, InfoGround, RamGround, RamX
from common.blocks import StepBlock, validate_block
from common.game import actions_of
from common.traces import Trace
from tests.actor_scene import ActorScene
from tests.native.recorded_clears import read_clears

pytestmark = pytest.mark.integration

WEIGHT, SCALE = 0.12, 0.25
MARIO: Mapping[str, Mapping[str, object]] = {
    "env": {"game": "mario", "core": "auto", "size": 42, "stack": 4},
    "actor": {"envs_per_actor": 1, "block_steps": 16, "send_window": 4},
    "shaping": {"reward_scale_start": SCALE, "reward_scale_anneal_steps": 80_000},
}
WHERE = RamX(high_address=0x6D, low_address=0x86, frame_skip=4)


def run_to_the_right(
    folder: Path, changes: Mapping[str, Mapping[str, object]], agent_steps: int
) -> ActorScene:
    """An actor with one environment, as far as its script leads."""
    stage = ActorScene(folder, {**MARIO, **changes})
    stage.publish(distance_weight=WEIGHT)
    stage.play(agent_steps)
    return stage


@pytest.mark.parametrize("from_ram", [False, True])
def test_a_scripted_run_to_the_right_earns_the_weight_for_every_pixel(
    tmp_path: Path, from_ram: bool
) -> None:
    shaping = {**MARIO["shaping"], "enable_ram_x_parse": from_ram}
    script = {"scripted_sequence": "RIGHT+B:80,RIGHT+A+B:20"}
    stage = run_to_the_right(tmp_path, {"scripts": script, "shaping": shaping}, 25)

    (lane,) = stage.actor._lanes
    distance, beat = lane.summary.ground, stage.beats()[-1]
    raw, scaled = (float(str(beat[f"shaping_{name}_sum"])) for name in ("raw", "scaled"))
    assert distance > 100
    assert raw / distance == pytest.approx(WEIGHT)
    assert scaled / raw == pytest.approx(SCALE)
    assert beat["shaping_parse_fail"] == 0
    assert beat["scripted_steps_total"] == 25
    stage.actor.close()


def test_rewards_in_blocks_are_shaped_and_the_return_is_not(tmp_path: Path) -> None:
    script = {"scripted_sequence": "RIGHT+B:80"}
    plain = run_to_the_right(tmp_path / "plain", {"scripts": script, "shaping": {}}, 20)
    plain_return = plain.actor._lanes[0].summary.episode_return
    shaped = run_to_the_right(tmp_path / "shaped", {"scripts": script}, 20)
    (lane,) = shaped.actor._lanes
    blocks = [*(StepBlock(**one.arrays) for one in shaped.blocks()), *lane.flush()]

    for block in blocks:
        validate_block(block, shaped.settings.spec)
        assert block.scripted.all()
    rewards = np.concatenate([block.rewards[: block.num_items] for block in blocks])
    added = float(rewards.sum()) - lane.summary.episode_return
    assert added == pytest.approx(WEIGHT * SCALE * lane.summary.ground, rel=1e-4)
    assert lane.summary.episode_return == pytest.approx(plain_return)
    plain.actor.close()
    shaped.actor.close()


def test_the_probe_finds_an_action_that_leads_forward(caplog: pytest.LogCaptureFixture) -> None:
    env = MarioEnv(core="auto")
    with caplog.at_level(logging.INFO):
        best = ForwardProbe(env, InfoGround(), seed=1).best(6)

    assert best is not None
    assert {"right", "B"} <= set(actions_of("simple")[best])
    dx = {record.__dict__["action"]: record.__dict__["dx"] for record in caplog.records}
    assert dx.keys() == set(range(7))
    assert dx[best] == max(dx.values()) > 10
    # Standing and going left gain no ground.
    assert dx[0] == dx[6] == 0
    env.close()


def test_who_stands_still_is_led_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script = {
        "scripted_sequence": "NOOP:120",
        "probe_forward_actions": 24,
        "auto_bootstrap_threshold": 20,
        "auto_bootstrap_frames": 80,
    }
    with caplog.at_level(logging.INFO):
        stage = run_to_the_right(tmp_path, {"scripts": script}, 50)

    (lane,) = stage.actor._lanes
    beat = stage.beats()[-1]
    assert beat["bootstraps_total"] == 1
    assert lane.summary.ground > 50
    phrases = [record.getMessage() for record in caplog.records]
    assert phrases.index("[actor][bootstrap] start") < phrases.index("[actor][bootstrap] end")
    stage.actor.close()


def clear_of(stage: str) -> Trace:
    (clear,) = [clear for clear in read_clears() if clear.stage == stage]
    return clear


def gains_of(env: MarioEnv, source: GroundSource, clear: Trace) -> list[int]:
    """Of every agent step of a recorded clear."""
    _, info = env.reset(options={"noop_frames": clear.noop_frames})
    source.begin(info)
    gains = []
    for action in clear.actions:
        _, _, terminated, truncated, info = env.step(action)
        gains.append(source.gained(info) or 0)
        if terminated or truncated:
            break
    assert info["flag_get"]
    return gains


def test_x_from_ram_gains_what_the_environment_counts() -> None:
    clear = clear_of("1-1")
    env = MarioEnv(core="auto", actions=clear.action_set)

    from_info = gains_of(env, InfoGround(), clear)
    from_ram = gains_of(env, RamGround(env, WHERE), clear)

    assert sum(from_info) > 3_000
    assert from_ram == from_info
    env.close()


def test_through_pipes_and_mazes_x_from_ram_gains_no_more_than_was_walked() -> None:
    clear = clear_of("8-4")
    env = MarioEnv(core="auto", stage="8-4", actions=clear.action_set)

    from_info = gains_of(env, InfoGround(), clear)
    from_ram = gains_of(env, RamGround(env, WHERE), clear)

    assert 0 < sum(from_ram) <= sum(from_info)
    assert max(from_ram) <= 5 * WHERE.frame_skip
    env.close()
