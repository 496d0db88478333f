"""The environment over the real emulator."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import actor.env
from actor.env.mario_env import MarioEnv
from actor.env.native_core import NativeCore
from actor.env.stage_game import StageGame
from common.errors import ConfigError, EnvironmentFailed
from common.game import STAGES, parse_stage
from tests.gray_picture import gray_picture

pytestmark = pytest.mark.integration

_ROOT = Path(__file__).parents[2]
_RIGHT, _RUN_JUMP = 1, 4
_PLAY_A_LITTLE = """
import sys
import actor.env, gymnasium
env = gymnasium.make('warpzone/SuperMarioBros-v0', core=sys.argv[1])
env.reset(seed=1)
env.step(1)
env.close()
assert not {'gym', 'nes_py', *sys.argv[2:]} & sys.modules.keys()
"""


@pytest.fixture(scope="module", params=["nes_py", "native"])
def shared_env(request: pytest.FixtureRequest) -> Iterator[MarioEnv]:
    """One emulator of each kind for all tests that only reset and play.

    What does not depend on the emulator is tested with the quicker one only.
    """
    env = MarioEnv(core=request.param, render_mode="rgb_array")
    yield env
    env.close()


def _play_right(env: MarioEnv, agent_steps: int) -> list[bytes]:
    observations = []
    for _ in range(agent_steps):
        observation, _, terminated, truncated, _ = env.step(_RIGHT)
        observations.append(observation.tobytes())
        if terminated or truncated:
            break
    return observations


def test_gymnasium_finds_nothing_to_complain_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The checker only logs its complaints; here they are failures.
    complaints: list[str] = []
    monkeypatch.setattr(
        "gymnasium.logger.warn", lambda message, *values: complaints.append(message % values)
    )
    env = gymnasium.make(
        actor.env.MARIO_ENV_ID, core="native", render_mode="rgb_array", noop_max=10
    )

    check_env(env.unwrapped)

    env.close()
    assert complaints == []


def test_the_registered_id_takes_keywords() -> None:
    env = gymnasium.make(
        "warpzone/SuperMarioBros-v0", stage="3-1", core="native", actions="complex", stack=2
    )

    observation, info = env.reset(seed=1)

    assert env.observation_space == gymnasium.spaces.Box(0, 255, (2, 84, 84), np.uint8)
    assert env.action_space == gymnasium.spaces.Discrete(12)
    assert observation.shape == (2, 84, 84)
    assert (info["world"], info["stage"]) == (3, 1)
    env.close()


@pytest.mark.parametrize(
    "words", [("nes_py", "actor.env.native_core"), ("native", "actor.env.nes_core", "cv2")]
)
def test_nothing_is_printed_and_what_is_not_needed_stays_out(words: tuple[str, ...]) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", _PLAY_A_LITTLE, *words],
        cwd=_ROOT,
        timeout=60,
        check=False,
        capture_output=True,
        text=True,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_the_first_frame_fills_the_stack(shared_env: MarioEnv) -> None:
    observation, info = shared_env.reset(seed=1)

    assert observation.shape == (4, 84, 84)
    assert observation.dtype == np.uint8
    assert (observation == observation[0]).all()
    np.testing.assert_array_equal(shared_env.frame, observation[-1])
    assert (info["raw_reward"], info["frames"], info["x_pos"]) == (0.0, 0, 40)


def test_the_stack_moves_by_one_frame(shared_env: MarioEnv) -> None:
    before, _ = shared_env.reset(seed=1)

    for _ in range(6):
        after, *_ = shared_env.step(_RIGHT)
        np.testing.assert_array_equal(after[:-1], before[1:])
        np.testing.assert_array_equal(after[-1], shared_env.frame)
        before = after


def test_a_frame_shows_the_whole_screen(shared_env: MarioEnv) -> None:
    shared_env.reset(seed=1)
    _play_right(shared_env, 5)

    np.testing.assert_array_equal(shared_env.frame, gray_picture(shared_env.screen(), (84, 84)))


def test_nothing_that_leaves_the_environment_changes_later(shared_env: MarioEnv) -> None:
    observation, info = shared_env.reset(seed=1)
    kept = (observation, shared_env.frame, shared_env.screen(), shared_env.render())
    contents = [array.tobytes() for array in kept if array is not None]
    info_before = dict(info)

    _play_right(shared_env, 10)

    assert [array.tobytes() for array in kept if array is not None] == contents
    assert info == info_before
    assert all(array is not None and array.flags.owndata for array in kept)


def test_writing_to_what_left_does_not_reach_the_environment(shared_env: MarioEnv) -> None:
    observation, _ = shared_env.reset(seed=1)
    expected = shared_env.screen()

    observation[:] = 0
    shared_env.frame[:] = 0
    shared_env.screen()[:] = 0

    np.testing.assert_array_equal(shared_env.screen(), expected)
    assert shared_env.frame.max() > 0


def test_the_same_seed_gives_the_same_frames(shared_env: MarioEnv) -> None:
    runs = []
    for _ in range(2):
        shared_env.reset(seed=5)
        runs.append(_play_right(shared_env, 25))

    assert runs[0] == runs[1]


def test_two_emulators_do_not_disturb_each_other(shared_env: MarioEnv) -> None:
    shared_env.reset(seed=5)
    alone = _play_right(shared_env, 15)
    other = MarioEnv(core=shared_env.settings.core)
    other.reset(seed=5)
    shared_env.reset(seed=5)
    together = []

    for _ in range(15):
        together.append(shared_env.step(_RIGHT)[0].tobytes())
        other.step(_RUN_JUMP)

    other.close()
    assert together == alone


def test_training_reward_is_the_scaled_sum(shared_env: MarioEnv) -> None:
    shared_env.reset(seed=1)

    for _ in range(10):
        _, reward, _, _, info = shared_env.step(_RIGHT)
        assert reward == pytest.approx(float(info["raw_reward"]) / 15)

    assert reward > 0


def test_the_flag_brings_its_bonus_and_terminates() -> None:
    env = MarioEnv(core="native", flag_bonus=10.0)
    env.reset(seed=1)
    env._core.ram[0x0770] = 2  # the end of a world, as after Bowser's axe

    _, reward, terminated, truncated, info = env.step(0)

    assert (terminated, truncated, info["flag_get"]) == (True, False, True)
    assert reward == pytest.approx(10.0 + float(info["raw_reward"]) / 15)
    env.close()


def test_a_death_terminates_and_then_asks_for_a_reset(shared_env: MarioEnv) -> None:
    shared_env.reset(seed=1)
    for _ in range(200):
        _, reward, terminated, truncated, info = shared_env.step(_RIGHT)  # into the first Goomba
        if terminated:
            break

    assert (terminated, truncated, info["flag_get"]) == (True, False, False)
    assert reward < 0
    with pytest.raises(EnvironmentFailed, match="call reset"):
        shared_env.step(0)


def test_the_time_limit_truncates() -> None:
    env = MarioEnv(core="native", max_episode_frames=10, frame_skip=4)
    env.reset(seed=1)

    ends = [env.step(0)[2:4] for _ in range(3)]

    assert ends == [(False, False), (False, False), (False, True)]
    env.close()


def test_noop_starts_follow_the_seed() -> None:
    env = MarioEnv(core="native", noop_max=30)
    starts = {seed: env.reset(seed=seed)[0].tobytes() for seed in range(6)}

    again = {seed: env.reset(seed=seed)[0].tobytes() for seed in range(6)}

    assert again == starts
    assert len(set(starts.values())) > 1
    env.close()


def test_a_changed_stage_equals_a_fresh_emulator(shared_env: MarioEnv) -> None:
    shared_env.reset(seed=1)
    _play_right(shared_env, 10)
    fresh = MarioEnv(stage="5-2", core="native")

    fresh_observation, fresh_info = fresh.reset(seed=1)
    observation, info = shared_env.reset(seed=1, options={"stage": "5-2"})

    np.testing.assert_array_equal(observation, fresh_observation)
    assert info == fresh_info
    assert bytes(shared_env._core.ram) == bytes(fresh._core.ram)
    assert _play_right(shared_env, 20) == _play_right(fresh, 20)
    fresh.close()
    shared_env.reset(seed=1, options={"stage": "1-1"})


@pytest.mark.parametrize("action", [-1, 7])
def test_an_unknown_action_is_refused(shared_env: MarioEnv, action: int) -> None:
    shared_env.reset(seed=1)

    with pytest.raises(ValueError, match="0 to 6"):
        shared_env.step(action)


def test_unknown_keywords_values_are_configuration_errors() -> None:
    wrong = ({"stage": "9-9"}, {"actions": "all"}, {"render_mode": "human"}, {"core": "fast"})
    for keywords in wrong:
        with pytest.raises(ConfigError):
            MarioEnv(**keywords)  # type: ignore[arg-type]  # wrong on purpose


def test_a_closed_environment_says_so() -> None:
    env = MarioEnv(core="native")
    env.reset(seed=1)
    env.close()
    env.close()

    for call in (lambda: env.step(0), env.reset, env.screen):
        with pytest.raises(EnvironmentFailed, match="closed"):
            call()


def test_both_cores_give_the_same_observations_rewards_ends_and_infos() -> None:
    envs = [MarioEnv(core=core, noop_max=30) for core in ("nes_py", "native")]
    dice = random.Random(3)
    _assert_equal([env.reset(seed=3) for env in envs])
    episodes = 0
    for _ in range(250):
        action = _RUN_JUMP if dice.random() < 0.6 else dice.randrange(7)
        steps = [env.step(action) for env in envs]
        _assert_equal(steps)
        if steps[0][2]:
            episodes += 1
            _assert_equal([env.reset() for env in envs])
    np.testing.assert_array_equal(envs[0].screen(), envs[1].screen())
    for env in envs:
        env.close()

    assert episodes > 0


def _assert_equal(answers: Sequence[tuple[Any, ...]]) -> None:
    """Of a reset or a step: observations first, then plain values."""
    (observation, *values), (other_observation, *other_values) = answers
    np.testing.assert_array_equal(observation, other_observation)
    assert values == other_values


def test_every_stage_begins_in_its_world_with_mario_under_control() -> None:
    core = NativeCore()
    game = StageGame(core, STAGES[0])
    first_screens = set()

    for stage in STAGES:
        game.select(stage)
        info = game.reset()
        assert (info["world"], info["stage"]) == parse_stage(stage)
        first_screens.add(core.screen().tobytes())
        played = [game.play(0x80, 30) for _ in range(2)]
        assert not played[0].is_over, stage
        assert int(played[1].info["x_pos"]) > int(info["x_pos"]), stage

    assert len(first_screens) == len(STAGES)
    core.close()
