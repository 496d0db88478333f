from __future__ import annotations

import pytest

from actor.gains import Gain
from actor.shaping import Shaping, ShapingPlan
from common.blocks import MAX_ABS_REWARD

PLAN = ShapingPlan(score_weight=0.01, scale_start=0.25, scale_final=0.125, anneal_agent_steps=800)


def shaping_at(agent_steps: int, distance_weight: float, plan: ShapingPlan = PLAN) -> Shaping:
    shaping = Shaping(plan)
    shaping.follow(agent_steps, distance_weight)
    return shaping


@pytest.mark.parametrize(
    ("agent_steps", "scale"), [(0, 0.25), (400, 0.1875), (800, 0.125), (10_000, 0.125)]
)
def test_the_scale_goes_linearly_with_the_steps_of_the_run(agent_steps: int, scale: float) -> None:
    assert PLAN.scale_at(agent_steps) == scale


def test_without_a_way_the_scale_is_the_final_one_at_once() -> None:
    assert ShapingPlan(scale_start=1.0, scale_final=0.5).scale_at(0) == 0.5


def test_the_scaled_sum_of_both_terms_is_added() -> None:
    shaping = shaping_at(0, 0.1)

    assert shaping.add(1.0, Gain(8, 200)) == pytest.approx(1.0 + (0.1 * 8 + 0.01 * 200) * 0.25)


def test_without_weights_the_reward_is_untouched_and_nothing_is_summed() -> None:
    shaping = shaping_at(0, 0.0, ShapingPlan(scale_start=9.0))
    reward = 1 / 3

    assert shaping.add(reward, Gain(8, 200)) is reward
    assert shaping.figures()["shaping_raw_sum"] == 0


def test_the_distance_weight_may_change_on_the_way() -> None:
    shaping = shaping_at(0, 0.0, ShapingPlan(scale_start=1.0, scale_final=1.0))
    before = shaping.add(0.0, Gain(10, 0))
    shaping.follow(100, 0.5)

    assert (before, shaping.add(0.0, Gain(10, 0))) == (0.0, 5.0)


def test_unknown_ground_earns_nothing_but_points_still_do() -> None:
    assert shaping_at(800, 0.1).add(0.0, Gain(None, 100)) == 0.125


@pytest.mark.parametrize("sign", [1, -1])
def test_a_reward_stays_within_what_a_block_may_hold(sign: int) -> None:
    shaping = shaping_at(0, 0.0, ShapingPlan(score_weight=sign * 1e4, anneal_agent_steps=0))

    assert shaping.add(1.0, Gain(0, 1_000)) == sign * MAX_ABS_REWARD


def test_figures_are_sums_and_the_newest_step() -> None:
    shaping = shaping_at(0, 0.5, ShapingPlan(scale_start=0.5, anneal_agent_steps=10))
    shaping.add(1.0, Gain(4, 0))
    shaping.add(1.0, Gain(6, 0))

    assert shaping.figures() == {
        "shaping_raw_sum": 5.0,
        "shaping_scaled_sum": 2.5,
        "shaping_last_raw": 3.0,
        "shaping_last_scaled": 1.5,
        "shaping_last_dx": 6,
        "shaping_last_scale": 0.5,
    }
