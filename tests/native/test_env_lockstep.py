from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from actor.env.core_choice import PlayedCore
from actor.env.interface import Info
from common.game import STAGES
from tests.native import env_journal, env_lockstep
from tests.native.env_journal import DIGEST_BYTES, EnvTask, Journal, Moment, episode_actions, play
from tests.native.env_lockstep import (
    check,
    clear_tasks,
    differing_parts,
    first_difference,
    random_tasks,
)
from tests.native.recorded_clears import read_clears

_TASK = EnvTask(stage="1-1", seed=3, policy="right", agent_steps=40)
_INFO: Info = {"x_pos": 40, "flag_get": True}
_MOMENT = Moment(
    np.zeros((4, 84, 84), np.uint8), 0.5, False, False, {"x_pos": 40, "flag_get": True}
)
_SPOTTED = _MOMENT.observation.copy()
_SPOTTED[1, 2, 3] = 9
_ALTERED = {
    "pixel": (_MOMENT._replace(observation=_SPOTTED), "1 pixels, the first at (1, 2, 3): 0, 9"),
    "reward": (_MOMENT._replace(reward=0.25), "reward: 0.5, 0.25"),
    "terminated": (_MOMENT._replace(is_terminated=True), "is_terminated: False, True"),
    "truncated": (_MOMENT._replace(is_truncated=True), "is_truncated: False, True"),
    "info": (_MOMENT._replace(info={"x_pos": 41, "flag_get": True}), "info['x_pos']: 40, 41"),
    "type": (_MOMENT._replace(info={"x_pos": 40, "flag_get": 1}), "info['flag_get']: True, 1"),
    "key": (_MOMENT._replace(info={"flag_get": True}), "info['x_pos']: 40, None"),
}


@pytest.fixture
def _quick_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native core plays both halves."""

    def play_natively(task: EnvTask, core: PlayedCore) -> Iterator[Moment]:
        del core
        return play(task, "native")

    monkeypatch.setattr(env_journal, "play", play_natively)
    monkeypatch.setattr(env_lockstep, "play", play_natively)


@pytest.mark.parametrize("name", _ALTERED)
def test_whatever_differs_changes_the_digest_and_is_told(name: str) -> None:
    altered, told = _ALTERED[name]

    assert altered.digest() != _MOMENT.digest()
    assert differing_parts(_MOMENT, altered) == [told]


def test_equal_moments_have_equal_digests_whatever_the_order_of_info() -> None:
    twin = _MOMENT._replace(info=dict(reversed(_MOMENT.info.items())))

    assert len(_MOMENT.digest()) == DIGEST_BYTES
    assert twin.digest() == _MOMENT.digest()
    assert differing_parts(_MOMENT, twin) == []


def test_the_first_different_moment_is_found_also_when_one_side_ends_early() -> None:
    other = _MOMENT._replace(reward=1.0)
    recorded = (_MOMENT.digest() * 2) + other.digest()

    assert first_difference(recorded, iter([_MOMENT, _MOMENT, other])) is None
    assert first_difference(recorded, iter([_MOMENT, other, other])) == 1
    assert first_difference(recorded, iter([_MOMENT, _MOMENT])) == 2
    assert first_difference(recorded, iter([_MOMENT, _MOMENT, other, other])) == 3


def test_random_tasks_cover_all_stages_with_both_policies() -> None:
    tasks = random_tasks(129_000)

    assert sum(task.agent_steps for task in tasks) == 129_000
    assert {(task.stage, task.policy) for task in tasks} == {
        (stage, policy) for stage in STAGES for policy in ("right", "uniform")
    }
    assert len({task.name for task in tasks}) == len(tasks)


def test_a_task_ends_episodes_by_death_and_by_the_time_limit() -> None:
    rightward = EnvTask(stage="1-1", seed=0, policy="right", agent_steps=200)
    aimless = EnvTask(stage="5-2", seed=49, policy="uniform", agent_steps=760)

    deaths = [moment.is_terminated for moment in play(rightward, "native")]
    limits = [moment.is_truncated for moment in play(aimless, "native")]

    assert any(deaths)
    assert len(deaths) == 1 + rightward.agent_steps + sum(deaths)
    assert limits.index(True) == 750


def test_a_script_is_followed_to_some_point_or_to_its_end() -> None:
    task = EnvTask(stage="1-1", seed=3, policy="right", agent_steps=9, script=(99,) * 30)
    generator = random.Random(0)

    followed = set()
    for _ in range(50):
        actions = episode_actions(task, generator)
        followed.add(sum(next(actions) == 99 for _ in range(40)))

    assert 30 in followed
    assert len(followed) > 5


def test_tasks_along_a_clear_reach_the_flag() -> None:
    (task,) = clear_tasks([clear for clear in read_clears() if clear.stage == "1-4"])

    flags = [moment.info["flag_get"] for moment in play(replace(task, agent_steps=900), "native")]

    assert any(flags)
    assert task.name == "1-4-right-after-script-10000"


@pytest.mark.usefixtures("_quick_reference")
def test_a_finished_task_is_kept_and_a_changed_one_is_recorded_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert journal.read(_TASK) is None

    digests = journal.record(_TASK)

    assert journal.read(_TASK) == digests
    assert len(digests) == DIGEST_BYTES * len(list(play(_TASK, "native")))
    longer = EnvTask(stage="1-1", seed=3, policy="right", agent_steps=41)
    assert longer.name == _TASK.name
    assert journal.read(longer) is None


@pytest.mark.usefixtures("_quick_reference")
def test_a_journal_that_nobody_can_repeat_is_told_from_a_difference(tmp_path: Path) -> None:
    assert check(_TASK, tmp_path).difference == ""
    path = tmp_path / f"{_TASK.name}.journal"
    content = bytearray(path.read_bytes())
    content[-DIGEST_BYTES] ^= 1
    path.write_bytes(content)

    assert (
        "moment 41: the journal is not what nes_py gives today" in check(_TASK, tmp_path).difference
    )


def test_a_core_that_differs_is_found_by_its_first_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def play_altered(task: EnvTask, core: PlayedCore) -> Iterator[Moment]:
        for index, moment in enumerate(play(task, "native")):
            is_wrong = core == "native" and index == 17
            yield moment._replace(reward=99.0) if is_wrong else moment

    monkeypatch.setattr(env_journal, "play", play_altered)
    monkeypatch.setattr(env_lockstep, "play", play_altered)

    told = check(_TASK, tmp_path).difference

    assert told.startswith("1-1-right-00003, moment 17: reward: ")
    assert told.endswith(", 99.0")
