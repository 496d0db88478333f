from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.controls import PlayControls
from common.messages import Scalar
from common.metrics import METRIC_NAMES
from learner.play_report import MAX_PEERS, PlaySums, count_acknowledged, play_metrics
from learner.progress import RunProgress


def beat(incarnation: int = 1, **values: Scalar) -> dict[str, Scalar]:
    return {"role": "actor", "incarnation": incarnation, **values}


def test_sums_of_all_actors_add_up() -> None:
    sums = PlaySums()
    for peer, raw, scaled in (("actor-0", 1.5, 0.5), ("actor-1", 2.0, 0.25)):
        sums.note(peer, beat(shaping_raw_sum=raw, shaping_scaled_sum=scaled))

    metrics = play_metrics(sums, [])

    assert metrics["env_shaping_raw_sum"] == 3.5
    assert metrics["env_shaping_scaled_sum"] == 0.75


def test_a_restarted_actor_adds_to_what_its_earlier_life_did() -> None:
    sums = PlaySums()
    for life, steps in ((1, 10), (1, 30), (2, 4), (2, 9)):
        sums.note("actor-0", beat(life, scripted_steps_total=steps))

    assert play_metrics(sums, [])["scripted_steps_total"] == 39


@given(st.lists(st.lists(st.integers(-50, 50), min_size=1, max_size=6), max_size=6))
def test_growth_of_successive_lives_is_counted_once(lives: list[list[int]]) -> None:
    """Also where it is negative: a weight of the score may be."""
    sums = PlaySums()
    for life, growth in enumerate(lives):
        for done in range(1, len(growth) + 1):
            sums.note("actor-0", beat(life, shaping_raw_sum=sum(growth[:done])))

    assert sums.totals.get("env_shaping_raw_sum", 0) == sum(map(sum, lives))


def test_a_resumed_learner_does_not_count_twice_what_living_actors_tell_again() -> None:
    before = RunProgress()
    before.play.note("actor-0", beat(1, bootstraps_total=5))
    before.play.note("actor-1", beat(1, bootstraps_total=2))

    resumed = RunProgress.from_state(json.loads(json.dumps(before.to_state())))
    resumed.play.note("actor-0", beat(1, bootstraps_total=6))
    resumed.play.note("actor-1", beat(2, bootstraps_total=1))

    assert resumed.play.totals == {"bootstraps_total": 9}


@pytest.mark.parametrize("odd", [math.nan, math.inf, 1e300, True, "many", None])
def test_values_that_cannot_be_added_up_are_left_out(odd: Scalar) -> None:
    sums = PlaySums()
    sums.note("actor-0", beat(slow_steps_total=odd, bootstraps_total=1))

    assert sums.totals == {"bootstraps_total": 1}


def test_peers_are_bounded() -> None:
    sums = PlaySums()
    for index in range(MAX_PEERS + 10):
        sums.note(f"actor-{index}", beat(bootstraps_total=1))

    assert len(sums.lives) == MAX_PEERS


def test_the_last_values_are_those_of_the_actor_heard_last() -> None:
    beats = [
        beat(shaping_last_dx=1, shaping_last_scale=0.2),
        beat(shaping_last_dx=7, shaping_last_scale=0.1),
        beat(shaping_last_dx=None),
    ]

    metrics = play_metrics(PlaySums(), beats)

    assert metrics["env_shaping_last_dx"] == 7
    assert metrics["env_shaping_last_scale"] == 0.1


def test_stagnation_is_a_mean_over_environments() -> None:
    beats = [
        beat(stagnation_envs=1, stagnation_steps_sum=30, envs=1),
        beat(stagnation_envs=2, stagnation_steps_sum=10, envs=3),
    ]

    metrics = play_metrics(PlaySums(), beats)

    assert metrics["stagnation_envs"] == 3
    assert metrics["stagnation_mean_steps"] == 10


def test_what_nobody_told_is_unknown() -> None:
    metrics = play_metrics(PlaySums(), [beat()])

    assert metrics.keys() <= METRIC_NAMES
    assert set(metrics.values()) == {None}


def test_an_actor_acknowledges_a_revision_of_this_life_of_the_learner() -> None:
    controls = PlayControls(revision=2)
    beats = [
        beat(weight_generation=7, controls_revision=2),
        beat(weight_generation=7, controls_revision=1),
        beat(weight_generation=6, controls_revision=2),
        beat(),
    ]

    assert count_acknowledged(beats, controls, generation=7) == 1
