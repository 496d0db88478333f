from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from common.config import AdaptiveSettings, Settings, ShapingSettings
from learner.assembly import build_course
from learner.course import Course
from tests.episode_factory import make_episode

WINDOW = 500


def course(*, adaptive: bool, distance_weight: float = 0.1) -> Course:
    settings = Settings(
        shaping=ShapingSettings(reward_distance_weight=distance_weight),
        adaptive=AdaptiveSettings(adaptive=adaptive, adaptive_window_agent_steps=WINDOW),
    )
    return build_course(settings)


def stand_still(one: Course, *, from_start: bool = True) -> None:
    one.follow(0)
    for _ in range(10):
        episode = make_episode(forward_agent_steps=0, distance_pixels=0.0, from_start=from_start)
        one.note(episode)
    one.follow(WINDOW)


def test_a_schedule_changes_what_is_in_force(caplog: pytest.LogCaptureFixture) -> None:
    one = course(adaptive=True)

    with caplog.at_level(logging.INFO):
        stand_still(one)

    assert one.metrics() == {
        "adaptive_distance_weight_effective": 0.12,
        "adaptive_exploration_scale": 1.1,
        "adaptive_lr_scale": 1.0,
        "adaptive_ratio_fallback": 0,
    }
    assert [record.message for record in caplog.records] == ["adapted"]


def test_without_one_the_settings_are_in_force() -> None:
    one = course(adaptive=False)

    stand_still(one)

    assert one.metrics() == {
        "adaptive_distance_weight_effective": 0.1,
        "adaptive_exploration_scale": 1.0,
        "adaptive_lr_scale": 1.0,
        "adaptive_ratio_fallback": None,
    }


def test_episodes_that_began_within_a_stage_say_nothing() -> None:
    one = course(adaptive=True)

    stand_still(one, from_start=False)

    assert one.controls.play.revision == 0
    assert one.curriculum.records["1-1"].episodes == 0


def test_adapted_values_survive_a_resume() -> None:
    before, after = course(adaptive=True), course(adaptive=True)
    stand_still(before)

    after.restore(before.to_state())

    assert after.metrics() == before.metrics()
    assert after.to_state() == before.to_state()
    assert after.to_state()["adaptive"] == {"since": WINDOW, "level": None, "is_estimated": False}


def test_a_run_resumed_without_a_schedule_uses_its_settings() -> None:
    before = course(adaptive=True)
    stand_still(before)
    after = course(adaptive=False, distance_weight=0.3)

    after.restore(before.to_state())

    assert after.metrics()["adaptive_distance_weight_effective"] == 0.3
    assert after.metrics()["adaptive_exploration_scale"] == 1.0


def test_a_resumed_schedule_keeps_to_its_new_bounds() -> None:
    before = course(adaptive=True)
    stand_still(before)
    narrow = AdaptiveSettings(adaptive=True, adaptive_distance_weight_max=0.05)
    after = build_course(replace(Settings(), adaptive=narrow))

    after.restore(before.to_state())

    assert after.controls.play.distance_weight == 0.05


def test_a_schedule_begins_within_its_bounds() -> None:
    assert course(adaptive=True, distance_weight=3.0).controls.play.distance_weight == 0.2
