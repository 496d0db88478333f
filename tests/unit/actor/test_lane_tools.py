"""A lane of the corridor with shaping and scripts, and what its heartbeat tells of them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import numpy as np

from actor.block_builder import BlockBuilder, PlayedStep
from actor.env.corridor import JUMP, STAY, WALK, CorridorEnv, draw, step_reward
from actor.env.episode import EnvSnapshot
from actor.env.interface import Info
from actor.frontier import Frontier
from actor.gains import Gain, GainWatch, RamGround, RamX
from actor.lane import Lane
from actor.lane_tools import LaneTools, tool_figures
from actor.script import Guide, GuidePlan
from actor.shaping import Shaping, ShapingPlan
from actor.stage_choice import StageChoice
from actor.starts import Starts
from common.blocks import FLAG_TRUNCATED, StepBlock, validate_block
from common.specs import DataSpec

SPEC = DataSpec(height=16, width=16, stack=4, num_actions=3, n_step=2)
NOTHING = np.zeros(2, dtype=np.float32)


def lane_with(tools: LaneTools) -> Lane:
    starts = Starts(StageChoice(("1-1",), 1), Frontier(0.0, 1))
    builder = BlockBuilder(SPEC, 4, 0.9)
    return Lane(CorridorEnv(), builder, SPEC, seed=1, starts=starts, tools=tools)


def play(lane: Lane, action: int) -> PlayedStep:
    """What the policy chooses, unless the lane is led."""
    forced = lane.tools.guide.action
    step = PlayedStep(
        action=action if forced is None else forced,
        reward=0.0,
        flag=0,
        chosen_quantiles=NOTHING,
        greedy_quantiles=NOTHING,
        scripted=forced is not None,
    )
    lane.act(step)
    return step


def shaping(distance_weight: float) -> Shaping:
    one = Shaping(ShapingPlan(scale_start=0.5, scale_final=0.5))
    one.follow(0, distance_weight)
    return one


def test_new_cells_are_paid_for_and_the_return_is_that_of_the_game() -> None:
    lane = lane_with(LaneTools(shaping=shaping(2.0)))

    rewards = [play(lane, action).reward for action in (STAY, WALK, WALK)]

    own = [step_reward(0, 0), step_reward(0, 1), step_reward(1, 2)]
    assert rewards == [own[0], own[1] + 1.0, own[2] + 1.0]
    assert lane.summary.episode_return == sum(own)


def test_an_episode_that_begins_again_does_not_lose_or_earn_its_ground() -> None:
    lane = lane_with(LaneTools(shaping=shaping(2.0)))
    for action in (WALK, JUMP):
        play(lane, action)

    # It lies in the pit of cell 3; the next episode begins at 0.
    assert lane.summary.agent_steps == 0
    assert play(lane, STAY).reward == step_reward(0, 0)
    assert play(lane, WALK).reward == step_reward(0, 1) + 1.0


def collect(lane: Lane, actions: list[int]) -> list[StepBlock]:
    blocks = []
    for action in actions:
        play(lane, action)
        while (block := lane.take_block()) is not None:
            blocks.append(block)
    return blocks + lane.flush()


def test_a_script_leads_and_its_steps_are_marked() -> None:
    guide = Guide(GuidePlan(start=(WALK, WALK), start_episodes=1))
    blocks = collect(lane_with(LaneTools(guide=guide)), 4 * [STAY])

    (block,) = blocks
    validate_block(block, SPEC)
    assert block.actions.tolist() == [WALK, WALK, STAY, STAY]
    assert block.scripted.tolist() == [1, 1, 0, 0]
    assert block.prev_actions.tolist() == [SPEC.no_action, WALK, WALK, STAY]


def test_steps_that_are_not_stored_leave_the_frames_and_the_action_before_the_first_choice() -> (
    None
):
    guide = Guide(GuidePlan(start=(WALK, WALK), start_episodes=1))
    blocks = collect(lane_with(LaneTools(guide=guide, stores_scripted=False)), 4 * [STAY])

    (block,) = blocks
    validate_block(block, SPEC)
    assert block.actions.tolist() == [STAY, STAY]
    assert block.prev_actions.tolist() == [WALK, STAY]
    seen = [draw(cell, 16) for cell in (0, 0, 1, 2)]
    assert np.array_equal(block.frames[:4], np.stack(seen))
    assert block.frame_index[0] == 3


def test_a_bootstrap_that_is_not_stored_truncates_what_came_before() -> None:
    plan = GuidePlan(forward_action=WALK, stuck_agent_steps=2, bootstrap_agent_steps=1)
    tools = LaneTools(guide=Guide(plan), stores_scripted=False)
    blocks = collect(lane_with(tools), 5 * [STAY])

    for block in blocks:
        validate_block(block, SPEC)
    flags = np.concatenate([block.flags[: block.num_items] for block in blocks]).tolist()
    # Two steps of the policy, one that leads on, two of the policy.
    assert flags == [0, FLAG_TRUNCATED, 0, FLAG_TRUNCATED]
    assert tools.guide.bootstraps == 2


def test_figures_add_up_over_the_environments_of_an_actor() -> None:
    one = shaping(0.5)
    blind = GainWatch(RamGround(CorridorEnv(), RamX(high_address=1, low_address=2, frame_skip=4)))
    lanes = [
        lane_with(LaneTools(shaping=one, stagnation_agent_steps=3)),
        lane_with(LaneTools(shaping=one, stagnation_agent_steps=3)),
        lane_with(LaneTools(shaping=one, gains=blind)),
        lane_with(LaneTools(shaping=one, guide=Guide(GuidePlan(start=(WALK, WALK))))),
    ]
    for lane, actions in zip(lanes, ([WALK, STAY], 3 * [STAY], [WALK], [STAY, STAY]), strict=True):
        for action in actions:
            play(lane, action)

    assert tool_figures(one, [lane.tools for lane in lanes]) == {
        "shaping_raw_sum": 1.5,
        "shaping_scaled_sum": 0.75,
        "shaping_last_raw": 0.5,
        "shaping_last_scaled": 0.25,
        "shaping_last_dx": 1,
        "shaping_last_scale": 0.5,
        "shaping_parse_fail": 1,
        "stagnation_envs": 1,
        "stagnation_steps_sum": 1 + 3,
        "envs": 4,
        "scripted_steps_total": 2,
        "bootstraps_total": 0,
    }


def test_tools_that_nobody_asked_for_change_nothing() -> None:
    tools = LaneTools()
    tools.begin({"distance": 0, "x_pos": 0}, from_start=True)
    reward = 0.1

    assert tools.note(reward, {"distance": 9, "x_pos": 9}, is_over=False) is reward
    assert tools.guide.action is None
    assert Gain(9, 0) == GainWatch().note({"distance": 9})


class RestorableCorridor(CorridorEnv):
    """Goes back to the cell that a snapshot names."""

    def snapshot(self) -> EnvSnapshot:
        observation = np.stack([draw(cell, 16) for cell in (1, 1, 2, 2)])
        return cast("EnvSnapshot", SimpleNamespace(observation=observation))

    def restore(self, moment: EnvSnapshot) -> Info:
        del moment
        self.reset()
        return self.step(JUMP)[4]


def test_an_episode_that_goes_on_from_a_moment_has_no_script_and_earns_only_what_is_ahead() -> None:
    env = RestorableCorridor()
    frontier = Frontier(1.0, 1, "far")
    frontier.keep("1-1", 0, env.snapshot(), WALK)
    starts = Starts(StageChoice(("1-1",), 1), frontier)
    tools = LaneTools(shaping=shaping(2.0), guide=Guide(GuidePlan(start=(WALK,))))
    lane = Lane(env, BlockBuilder(SPEC, 4, 0.9), SPEC, seed=1, starts=starts, tools=tools)

    steps = [play(lane, action) for action in (STAY, JUMP)]
    (block,) = lane.flush()

    assert [step.scripted for step in steps] == [False, False]
    assert [step.reward for step in steps] == [step_reward(2, 2), step_reward(2, 4) + 2.0]
    validate_block(block, SPEC)
    assert block.prev_actions.tolist() == [WALK, STAY]
    assert np.array_equal(block.frames[:4], env.snapshot().observation)
