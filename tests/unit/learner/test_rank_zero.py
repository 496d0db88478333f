"""Rank 0 of a learner: all that one process does, in step with the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered, load_checkpoint
from common.config import Settings
from common.errors import RanksLost
from tests.lesson import BLOCK_ITEMS, Lesson, changed
from tests.rank_scene import EchoTeam
from tests.run_factory import corridor_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return corridor_settings(tmp_path, {"run": {"metrics_interval_s": 3600.0}})


@pytest.fixture
def team() -> EchoTeam:
    return EchoTeam()


@pytest.fixture
def lesson(settings: Settings, team: EchoTeam) -> Iterator[Lesson]:
    lesson = Lesson(settings, team=team)
    yield lesson
    lesson.close()


def test_the_others_begin_with_its_state_and_hear_its_rates(lesson: Lesson, team: EchoTeam) -> None:
    lesson.feed(10)

    assert lesson.run(10) > 0

    assert team.shared == 2
    word = team.heard[-1]
    assert word.learning_rate == lesson.loop._learner.optimizer.param_groups[0]["lr"]
    assert word.beta == lesson.loop._source.beta
    assert word.least_priority > 0


def test_a_lost_rank_costs_no_update(lesson: Lesson, team: EchoTeam) -> None:
    lesson.feed(10)
    lesson.run(10)
    updates, team.is_lost = lesson.updates, True

    with pytest.raises(RanksLost):
        lesson.loop.tick()

    (*_, newest) = sorted(list_numbered(lesson.paths.checkpoints))
    saved = load_checkpoint(newest).state["learner"]
    assert isinstance(saved, dict)
    assert saved["updates"] == updates > 0


def test_a_used_up_budget_is_told_before_the_end(settings: Settings, team: EchoTeam) -> None:
    lesson = Lesson(changed(settings, "run", {"max_agent_steps": 2 * BLOCK_ITEMS}), team=team)
    lesson.feed(2)

    lesson.run(10)

    assert lesson.loop.is_done
    assert [word.stops for word in team.heard[-2:]] == [False, True]
    lesson.close()


def test_it_ends_when_another_rank_was_told_to(lesson: Lesson, team: EchoTeam) -> None:
    lesson.run(2)
    before, team.stops = lesson.loop.is_done, True

    lesson.run(2)

    assert not before
    assert lesson.loop.is_done


def test_told_to_end_it_tells_the_others_saves_and_takes_leave(
    lesson: Lesson, team: EchoTeam
) -> None:
    lesson.run(2)

    lesson.loop.finish(1.0)

    assert team.heard[-1].stops
    assert list_numbered(lesson.paths.checkpoints)
