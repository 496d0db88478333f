from __future__ import annotations

import pytest

from common.game import actions_of
from launch.game_keys import (
    DUCK_AGENT_STEPS,
    HOP_AGENT_STEPS,
    JUMP_AGENT_STEPS,
    Controller,
    action_of,
    keys_in,
)


def held(controller: Controller, agent_steps: int) -> list[set[str]]:
    return [set(controller.next_buttons()) for _ in range(agent_steps)]


def pressed(*keys: str) -> Controller:
    controller = Controller()
    for key in keys:
        controller.press(key)
    return controller


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("\x1b[C", ["right"]),
        ("\x1bOD\x1b[Az", ["left", "up", "z"]),
        ("dD a", ["right", "right", "space", "left"]),
        ("\x1b[3~x", ["x"]),
        ("\x1b", ["\x1b"]),
        ("", []),
    ],
)
def test_keys_are_read_from_what_a_terminal_sends(text: str, keys: list[str]) -> None:
    assert keys_in(text) == keys


def test_a_direction_is_held_until_another_key_ends_it() -> None:
    controller = pressed("right")

    assert held(controller, 100) == [{"right"}] * 100
    controller.press("left")
    assert held(controller, 2) == [{"left"}] * 2
    controller.press("space")
    assert held(controller, 2) == [set()] * 2


def test_a_jump_lasts_as_long_as_a_full_jump_and_is_then_let_go() -> None:
    assert held(pressed("z"), JUMP_AGENT_STEPS + 1) == [{"A"}] * JUMP_AGENT_STEPS + [set()]
    assert held(pressed("c"), HOP_AGENT_STEPS + 1) == [{"A"}] * HOP_AGENT_STEPS + [set()]


def test_running_is_switched_on_and_off() -> None:
    controller = pressed("x", "right", "z")

    assert held(controller, 1) == [{"right", "A", "B"}]
    controller.press("x")
    assert "B" not in controller.next_buttons()


def test_ducking_stops_and_ends_by_itself() -> None:
    controller = pressed("right", "down")

    assert held(controller, DUCK_AGENT_STEPS + 1) == [{"down"}] * DUCK_AGENT_STEPS + [set()]


@pytest.mark.parametrize("action_set", ["simple", "complex", "extended"])
def test_every_action_is_found_by_its_own_buttons(action_set: str) -> None:
    actions = actions_of(action_set)

    assert [action_of(frozenset(one), action_set) for one in actions] == list(range(len(actions)))


def test_what_no_action_holds_becomes_the_nearest_that_holds_nothing_more() -> None:
    up_and_jump = action_of(frozenset({"up", "A"}), "extended")

    assert set(actions_of("extended")[up_and_jump]) < {"up", "A"}
