"""Episodes of the environment: how they are cut, kept, repeated and gone back to."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from actor.env.mario_env import MarioEnv
from actor.env.native_core import NativeCore
from actor.env.ram import WORLD, area_key, x_position
from actor.env.repetition import repeat
from common.errors import EnvironmentFailed
from tests.native.recorded_clears import read_clears

pytestmark = pytest.mark.integration

_RIGHT, _RUN_JUMP = 1, 4


def _play_right(env: MarioEnv, agent_steps: int) -> None:
    for _ in range(agent_steps):
        env.step(_RIGHT)


def test_standing_still_is_cut_and_walking_is_not() -> None:
    env = MarioEnv(core="native", stagnation_seconds=0.5)
    env.reset(seed=1)
    walking = [env.step(_RIGHT)[3] for _ in range(12)]

    standing: list[bool] = []
    while not any(standing):
        standing.append(env.step(0)[3])

    assert not any(walking)
    # Half a second is eight agent steps; before it he slides on for a moment.
    assert 8 <= len(standing) < 24
    env.close()


def test_the_games_own_clock_truncates() -> None:
    env = MarioEnv(core="native")
    env.reset(seed=1)
    env._core.ram[0x07F8:0x07FB] = bytes((0, 0, 1))
    for _ in range(200):
        _, _, terminated, truncated, info = env.step(0)
        if terminated or truncated:
            break

    assert (terminated, truncated, info["time"]) == (False, True, 0)
    env.close()


def _run_and_jump(generator: random.Random) -> Iterator[int]:
    while True:
        action = generator.choice([3, 3, _RUN_JUMP, _RUN_JUMP, _RUN_JUMP, _RIGHT, 2])
        yield from [action] * generator.randint(1, 8)


@pytest.mark.parametrize("ends", [False, True])
def test_a_loop_back_is_counted_and_may_end_the_episode(ends: bool) -> None:
    env = MarioEnv(core="native", stage="4-4", loop_back_ends=ends)
    env.reset(seed=1)
    # This play takes the wrong way in the first maze of 4-4.
    actions = _run_and_jump(random.Random(172))
    steps = [env.step(next(actions)) for _ in range(96)]

    *_, before, after = steps
    assert [step[4]["loop_backs"] for step in (before, after)] == [0, 1]
    assert int(before[4]["x_pos"]) - int(after[4]["x_pos"]) > 900
    assert after[4]["distance"] == before[4]["distance"]
    assert after[2:4] == (ends, False)
    env.close()


@pytest.mark.parametrize(
    ("stage", "loop_backs", "areas"), [("1-1", 0, 1), ("1-2", 0, 2), ("4-4", 0, 1), ("8-4", 1, 2)]
)
def test_pipes_are_other_areas_and_only_mazes_send_back(
    stage: str, loop_backs: int, areas: int
) -> None:
    (clear,) = [clear for clear in read_clears() if clear.stage == stage]
    env = MarioEnv(core="native", stage=stage, actions=clear.action_set)
    env.reset(options={"noop_frames": clear.noop_frames})
    seen = set()
    for action in clear.actions:
        info = env.step(action)[4]
        seen.add(area_key(env._core.ram))

    assert info["flag_get"]
    # The recorded clear of 8-4 takes a wrong way once before it finds the pipe.
    assert info["loop_backs"] == loop_backs
    assert len(seen) == areas
    env.close()


def test_a_warp_into_another_stage_is_no_clear_of_this_one() -> None:
    env = MarioEnv(core="native")
    env.reset(seed=1)
    _play_right(env, 3)
    env._core.ram[WORLD] = 3

    _, _, terminated, truncated, _ = env.step(_RIGHT)

    assert (terminated, truncated) == (False, True)
    env.close()


def test_a_flag_in_another_stage_is_not_what_a_trace_promises() -> None:
    (clear,) = [clear for clear in read_clears() if clear.stage == "1-1"]

    class Elsewhere(NativeCore):
        """Mario is in world 4 just before the flag."""

        def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
            super().step(buttons, frames, look=look)
            if x_position(self.ram) > 3_100:
                self.ram[WORLD] = 3

    assert repeat(clear, NativeCore()).has_flag
    assert not repeat(clear, Elsewhere()).has_flag


def test_a_sticky_action_is_the_one_before_and_a_trace_holds_what_was_played() -> None:
    env = MarioEnv(core="native", sticky=0.5)
    env.reset(seed=1)
    chosen = [_RIGHT, 0] * 20
    for action in chosen:
        env.step(action)

    played = env.trace().actions

    assert played != tuple(chosen)
    assert played[0] == chosen[0]
    assert all(
        now in (asked, before)
        for asked, before, now in zip(chosen[1:], played, played[1:], strict=False)
    )
    env.close()


@pytest.mark.parametrize("noop_frames", [0, 17])
def test_a_trace_repeats_the_episode_on_another_emulator(noop_frames: int) -> None:
    env = MarioEnv(core="native")
    _, info = env.reset(seed=5, options={"noop_frames": noop_frames})
    _play_right(env, 30)

    trace = env.trace()

    assert (trace.noop_frames, info["noop_frames"], trace.seed) == (noop_frames, noop_frames, 5)
    assert repeat(trace, NativeCore()).ram_sha256 == trace.final_ram_sha256


def test_play_from_a_snapshot_is_the_same_play_as_often_as_wanted() -> None:
    env, other = MarioEnv(core="native"), MarioEnv(core="native", stage="1-2")
    env.reset(seed=1)
    _play_right(env, 12)
    moment = env.snapshot()

    def play_on(player: MarioEnv) -> list[object]:
        steps = [player.step(_RUN_JUMP) for _ in range(20)]
        seen = [(step[0].tobytes(), *step[1:]) for step in steps]
        return [*seen, player.trace().final_ram_sha256, player.trace().actions]

    first = play_on(env)
    env.reset(seed=2)
    env.restore(moment)
    second = play_on(env)
    other.reset(seed=3)
    other.restore(moment)

    assert second == first
    assert play_on(other) == first
    assert repeat(env.trace(), NativeCore()).ram_sha256 == env.trace().final_ram_sha256
    assert other.stage == "1-1"
    env.close()
    other.close()


def test_a_core_without_snapshots_says_so() -> None:
    env = MarioEnv(core="nes_py")
    env.reset(seed=1)

    with pytest.raises(EnvironmentFailed, match="--core native"):
        env.snapshot()
    env.close()


def test_there_is_nothing_to_trace_before_the_first_step() -> None:
    env = MarioEnv(core="native")
    env.reset(seed=1)

    with pytest.raises(EnvironmentFailed, match="no agent step"):
        env.trace()
