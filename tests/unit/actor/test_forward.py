from __future__ import annotations

import logging

import pytest

from actor.env.corridor import JUMP, STAY, WALK, CorridorEnv
from actor.forward import ForwardProbe, default_forward_action
from actor.gains import InfoGround
from common.config import EnvSettings
from common.game import ACTION_SETS


@pytest.mark.parametrize("actions", ACTION_SETS)
def test_by_default_right_with_b_leads_forward(actions: str) -> None:
    action = default_forward_action(EnvSettings(actions=actions))

    assert ACTION_SETS[actions][action] == ("right", "B")


def test_in_the_corridor_walking_leads_forward() -> None:
    assert default_forward_action(EnvSettings(game="corridor")) == WALK


# Walking falls into the pit after three cells, jumping into the one after six.
@pytest.mark.parametrize(("agent_steps", "gains"), [(1, [0, 1, 2]), (6, [0, 3, 6])])
def test_every_action_is_tried_from_the_start_and_told(
    agent_steps: int, gains: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    probe = ForwardProbe(CorridorEnv(), InfoGround(), seed=1)

    with caplog.at_level(logging.INFO):
        best = probe.best(agent_steps)

    assert best == JUMP
    told = [(record.__dict__["action"], record.__dict__["dx"]) for record in caplog.records]
    assert told == list(zip((STAY, WALK, JUMP), gains, strict=True))
    assert {record.getMessage() for record in caplog.records} == {"[scripted][probe]"}


def test_where_nothing_leads_forward_there_is_no_best() -> None:
    assert ForwardProbe(CorridorEnv(), InfoGround(), seed=1).best(0) is None
