from __future__ import annotations

import logging

import pytest

from actor.script import BootstrapLog, Guide, GuidePlan, agent_steps_of, expand
from common.button_script import parse_script
from tests.fake_clock import FakeClock

FORWARD = 3


def played(guide: Guide, agent_steps: int, *, idle: int = 0) -> list[int | None]:
    """What the guide asks for, step by step."""
    actions = []
    for _ in range(agent_steps):
        actions.append(guide.action)
        guide.note(idle, is_over=False)
    return actions


@pytest.mark.parametrize(("frames", "agent_steps"), [(0, 0), (1, 1), (4, 1), (5, 2), (180, 45)])
def test_frames_are_played_as_whole_agent_steps(frames: int, agent_steps: int) -> None:
    assert agent_steps_of(frames, 4) == agent_steps


def test_a_sequence_is_one_action_per_agent_step() -> None:
    assert expand(parse_script("RIGHT+B:9,A:4,NOOP:1", "simple"), 4) == (3, 3, 3, 5, 0)


def test_by_default_nobody_is_led() -> None:
    guide = Guide()
    guide.begin_episode(from_start=True)

    assert played(guide, 500, idle=10_000) == 500 * [None]
    assert (guide.scripted_agent_steps, guide.bootstraps) == (0, 0)


def test_a_script_is_played_once_at_the_start() -> None:
    guide = Guide(GuidePlan(start=(1, 2)))
    guide.begin_episode(from_start=True)

    assert played(guide, 5) == [1, 2, None, None, None]
    assert guide.scripted_agent_steps == 2


def test_it_ends_with_its_episode_and_begins_with_the_next() -> None:
    guide = Guide(GuidePlan(start=(1, 2, 1)))
    guide.begin_episode(from_start=True)
    first = guide.action
    guide.note(0, is_over=True)
    guide.begin_episode(from_start=True)

    assert [first, *played(guide, 4)] == [1, 1, 2, 1, None]


def test_only_so_many_episodes_begin_with_it() -> None:
    guide = Guide(GuidePlan(start=(1,), start_episodes=2))
    begun = []
    for _ in range(4):
        guide.begin_episode(from_start=True)
        begun.append(guide.action)

    assert begun == [1, 1, None, None]


def test_an_episode_that_begins_elsewhere_has_no_script_and_uses_none_up() -> None:
    guide = Guide(GuidePlan(start=(1,), start_episodes=1))
    begun = []
    for from_start in (False, True, True):
        guide.begin_episode(from_start=from_start)
        begun.append(guide.action)

    assert begun == [None, 1, None]


def stuck_guide(told: BootstrapLog | None = None) -> Guide:
    plan = GuidePlan(forward_action=FORWARD, stuck_agent_steps=3, bootstrap_agent_steps=2)
    guide = Guide(plan, told)
    guide.begin_episode(from_start=True)
    return guide


def test_who_gains_no_ground_is_led_forward_for_a_while_and_then_has_time_again() -> None:
    guide = stuck_guide()
    actions = []
    for step in range(1, 12):
        actions.append(guide.action)
        guide.note(step, is_over=False)

    assert actions == [*3 * [None], *2 * [FORWARD], *3 * [None], *2 * [FORWARD], None]
    assert guide.bootstraps == 2
    assert guide.scripted_agent_steps == 4


def test_who_gains_ground_is_left_alone() -> None:
    guide = stuck_guide()
    for idle in (1, 2, 0, 1, 2, 0):
        guide.note(idle, is_over=False)

    assert guide.action is None
    assert guide.bootstraps == 0


def test_being_led_ends_with_the_episode() -> None:
    guide = stuck_guide()
    played(guide, 3, idle=3)
    led = guide.action
    guide.note(4, is_over=True)
    guide.begin_episode(from_start=True)

    assert (led, guide.action) == (FORWARD, None)
    assert played(guide, 3, idle=10) == [None, None, None]
    assert guide.action == FORWARD


def test_nobody_is_led_into_an_episode_that_has_just_ended() -> None:
    guide = stuck_guide()
    played(guide, 2, idle=2)
    guide.note(3, is_over=True)

    assert guide.bootstraps == 0


def test_a_script_at_the_start_is_not_interrupted() -> None:
    plan = GuidePlan(start=4 * (1,), forward_action=3, stuck_agent_steps=1, bootstrap_agent_steps=1)
    guide = Guide(plan)
    guide.begin_episode(from_start=True)

    assert played(guide, 6, idle=9) == [1, 1, 1, 1, FORWARD, None]


def test_start_and_end_of_a_bootstrap_are_told_both_or_neither(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = FakeClock()
    guide = stuck_guide(BootstrapLog(7, clock))

    with caplog.at_level(logging.INFO):
        played(guide, 10, idle=99)
        clock.advance(11.0)
        played(guide, 5, idle=99)

    assert guide.bootstraps == 3
    phrases = [record.getMessage() for record in caplog.records]
    assert phrases == 2 * ["[actor][bootstrap] start", "[actor][bootstrap] end"]
    assert caplog.records[0].__dict__["env"] == 7
    assert caplog.records[-1].__dict__["why"] == "done"
    assert caplog.records[-1].__dict__["bootstraps"] == 3
