from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from actor.block_builder import BlockBuilder, PlayedStep
from actor.env.corridor import (
    JUMP,
    MAX_EPISODE_AGENT_STEPS,
    OPTIMAL_AGENT_STEPS,
    OPTIMAL_RETURN,
    STAY,
    WALK,
    CorridorEnv,
    draw,
    step_reward,
)
from actor.env.interface import EnvProtocol, Info
from actor.frontier import Frontier
from actor.lane import MAX_DX_PER_AGENT_STEP, Lane
from actor.stage_choice import StageChoice
from actor.starts import Starts
from common.blocks import FLAG_TERMINATED, FLAG_TRUNCATED, U8, validate_block
from common.specs import DataSpec

SPEC = DataSpec(height=16, width=16, stack=4, num_actions=3, n_step=2)
TO_THE_FLAG = [WALK, WALK, JUMP, WALK, JUMP, WALK, JUMP, WALK, JUMP, JUMP]


def played(action: int) -> PlayedStep:
    quantiles = np.zeros(2, dtype=np.float32)
    return PlayedStep(
        action=action, reward=9.0, flag=9, chosen_quantiles=quantiles, greedy_quantiles=quantiles
    )


def corridor_lane(env: EnvProtocol | None = None) -> Lane:
    starts = Starts(StageChoice(("1-1",), 1), Frontier(0.0, 1))
    return Lane(env or CorridorEnv(), BlockBuilder(SPEC, 4, 0.9), SPEC, seed=1, starts=starts)


def test_reward_and_flag_are_what_the_game_answered() -> None:
    lane = corridor_lane()
    steps = [played(action) for action in (WALK, WALK, WALK)]

    finished = [lane.act(step) for step in steps]

    assert [step.reward for step in steps] == [step_reward(x, x + 1) for x in range(3)]
    assert [step.flag for step in steps] == [0, 0, FLAG_TERMINATED]
    assert finished[:2] == [None, None]
    assert finished[2] is not None


def test_summary_of_a_clear() -> None:
    lane = corridor_lane()

    for action in TO_THE_FLAG:
        finished = lane.act(played(action))

    assert finished is not None
    assert finished.cleared
    assert not finished.truncated
    assert finished.agent_steps == len(TO_THE_FLAG)
    steps_too_many = len(TO_THE_FLAG) - OPTIMAL_AGENT_STEPS
    assert finished.episode_return == pytest.approx(OPTIMAL_RETURN - steps_too_many / 16)
    assert (finished.start_x, finished.final_x, finished.max_x) == (0, 15, 15)
    assert finished.distance == 15
    assert finished.positive_dx_agent_steps == len(TO_THE_FLAG)


def test_time_limit_is_a_truncation() -> None:
    lane = corridor_lane()
    steps = [played(STAY) for _ in range(MAX_EPISODE_AGENT_STEPS)]

    finished = [lane.act(step) for step in steps][-1]

    assert finished is not None
    assert finished.truncated
    assert not finished.cleared
    assert steps[-1].flag == FLAG_TRUNCATED
    assert finished.positive_dx_agent_steps == 0


def test_observation_after_the_end_is_the_first_of_the_new_episode() -> None:
    lane = corridor_lane()
    for action in (WALK, WALK, WALK):
        lane.act(played(action))

    assert all(np.array_equal(frame, draw(0, 16)) for frame in lane.observation)
    assert lane.prev_action == SPEC.no_action
    assert lane.summary.agent_steps == 0


def test_blocks_of_a_lane_are_valid_and_show_the_final_frame() -> None:
    lane = corridor_lane()
    blocks = []
    for action in [WALK, WALK, WALK] * 4:
        lane.act(played(action))
        while (block := lane.take_block()) is not None:
            blocks.append(block)
    blocks += lane.flush()

    assert sum(block.num_items for block in blocks) == 12
    for block in blocks:
        validate_block(block, SPEC)
        for end in np.flatnonzero(block.flags):
            final = block.frames[int(block.frame_index[end]) + 1]
            assert np.array_equal(final, draw(3, 16))


def test_action_and_previous_action_go_along() -> None:
    lane = corridor_lane()

    lane.act(played(WALK))

    assert lane.prev_action == WALK
    assert np.array_equal(lane.observation[-1], draw(1, 16))
    assert np.array_equal(lane.observation[-2], draw(0, 16))


@dataclass
class TeleportEnv:
    """Its x follows a script; nothing else changes."""

    xs: list[int]
    height: int = 16
    width: int = 16
    stack: int = 4
    num_actions: int = 3

    @property
    def frame(self) -> U8:
        return np.zeros((16, 16), dtype=np.uint8)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[U8, Info]:
        del seed, options
        return self._observation(), {"x_pos": self.xs.pop(0), "distance": 0}

    def step(self, action: int) -> tuple[U8, float, bool, bool, Info]:
        del action
        info: Info = {
            "x_pos": self.xs.pop(0),
            "flag_get": False,
            "distance": 7,
            "loop_backs": 1,
        }
        return self._observation(), 0.5, False, False, info

    def trace(self) -> None:
        """Nothing to repeat."""

    def close(self) -> None:
        """Nothing to release."""

    def _observation(self) -> U8:
        return np.zeros((4, 16, 16), dtype=np.uint8)


def test_distance_ignores_jumps() -> None:
    limit = MAX_DX_PER_AGENT_STEP
    # Starts at 40; walks 10, a pipe to 900, walks the limit, is thrown back, steps back by 5.
    lane = corridor_lane(TeleportEnv([40, 50, 900, 900 + limit, 100, 95]))

    for _ in range(5):
        lane.act(played(STAY))

    assert lane.summary.distance == 10 + limit - 5
    assert lane.summary.positive_dx_agent_steps == 2
    assert lane.summary.max_x == 900 + limit
    assert lane.summary.final_x == 95
    assert lane.summary.start_x == 40
