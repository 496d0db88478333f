"""What is adapted reaches the weights frame, the optimizer, the metrics and the checkpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered
from common.config import Settings
from common.jsonl import last_record
from common.messages import Heartbeat, Scalar
from tests.episode_factory import make_episode
from tests.lesson import Lesson
from tests.run_factory import corridor_settings

WINDOW = 64
ADAPTIVE = {"adaptive": True, "adaptive_window_agent_steps": WINDOW}
ACKNOWLEDGED = "all actors play with the newest controls"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return corridor_settings(
        tmp_path, {"run": {"metrics_interval_s": 3600.0}, "adaptive": ADAPTIVE}
    )


@pytest.fixture
def lesson(settings: Settings) -> Iterator[Lesson]:
    lesson = Lesson(settings)
    yield lesson
    lesson.close()


def stand_still(lesson: Lesson, *, episode_return: float = 0.0) -> None:
    """A window full of play that leads nowhere."""
    run = lesson.settings.run.run
    still = make_episode(forward_agent_steps=0, distance_pixels=0.0, episode_return=episode_return)
    for _ in range(10):
        lesson.tell(replace(still, run_id=run))
    lesson.feed(12)
    lesson.run(12)


def acknowledge(lesson: Lesson, revision: int) -> None:
    header = lesson.headers[-1]
    record: dict[str, Scalar] = {
        "role": "actor",
        "incarnation": 1,
        "weight_generation": header.generation,
        "controls_revision": revision,
    }
    lesson.tell(Heartbeat(run_id=lesson.settings.run.run, peer="actor-0", record=record))
    lesson.run(2)
    lesson.loop._reporter.write_line()


def test_a_change_is_published_without_waiting_for_the_next_version(lesson: Lesson) -> None:
    lesson.run(2)

    stand_still(lesson)

    first = next(header for header in lesson.headers if header.controls.revision == 1)
    assert first.controls.distance_weight == 0.02
    assert first.controls.exploration_scale == 1.1
    assert first.version % lesson.settings.learner.publish_interval_updates != 0


def test_falling_returns_reach_the_optimizer(lesson: Lesson) -> None:
    lesson.run(2)
    controls = lesson.loop._course.controls
    lesson.loop._course._schedule.restore({"since": 0, "level": 50.0})  # type: ignore[union-attr] # on

    stand_still(lesson, episode_return=-50.0)

    plan, steps = lesson.loop._plan, lesson.loop._progress.agent_steps
    rate = lesson.loop._learner.optimizer.param_groups[0]["lr"]
    assert controls.lr_scale == 0.9
    assert rate == pytest.approx(0.9 * plan.learning_rate.at(steps))


def test_the_log_says_once_when_all_actors_have_acknowledged(
    lesson: Lesson, caplog: pytest.LogCaptureFixture
) -> None:
    lesson.run(2)
    stand_still(lesson)
    said = []
    with caplog.at_level(logging.INFO):
        for revision in (0, 1, 1):
            acknowledge(lesson, revision)
            said.append([record.message for record in caplog.records].count(ACKNOWLEDGED))

    line = last_record(lesson.paths.metrics) or {}
    assert said == [0, 1, 1]
    assert line["controls_acked"] == 1
    assert line["adaptive_distance_weight_effective"] == 0.02


def test_a_resumed_run_goes_on_with_the_adapted_values(settings: Settings) -> None:
    first = Lesson(settings)
    first.run(2)
    stand_still(first)
    first.loop.finish(1.0)
    first.close()

    second = Lesson(settings, resume=list_numbered(first.paths.checkpoints)[0])
    second.run(1)

    assert second.headers[0].controls.distance_weight == 0.02
    assert second.headers[0].controls.exploration_scale == 1.1
    second.close()


def test_without_the_flag_play_is_left_alone(settings: Settings) -> None:
    lesson = Lesson(replace(settings, adaptive=replace(settings.adaptive, adaptive=False)))
    lesson.run(2)

    stand_still(lesson)

    assert {header.controls.revision for header in lesson.headers} == {0}
    lesson.close()
