from __future__ import annotations

from itertools import pairwise

import pytest

from common.errors import ConfigError
from common.game import (
    ACTION_SETS,
    STAGES,
    action_label,
    actions_of,
    button_byte,
    construction_deadline_s,
    num_actions_of,
    parse_stage,
)


def test_action_set_sizes() -> None:
    sizes = {name: num_actions_of(name) for name in ACTION_SETS}

    assert sizes == {"right_only": 5, "simple": 7, "complex": 12, "extended": 17}


def test_an_action_keeps_its_index_in_larger_sets() -> None:
    for smaller, larger in pairwise(ACTION_SETS.values()):
        assert larger[: len(smaller)] == smaller


def test_actions_are_distinct_and_never_pause() -> None:
    for actions in ACTION_SETS.values():
        buttons = [button_byte(action) for action in actions]
        assert len(set(buttons)) == len(buttons)
        assert not any(byte & 0b0000_1100 for byte in buttons)


def test_button_bytes_follow_the_controller() -> None:
    assert button_byte(()) == 0
    assert button_byte(("right", "A", "B")) == 0b1000_0011
    assert button_byte(("left",)) == 0b0100_0000


def test_labels_are_readable() -> None:
    assert action_label(()) == "NOOP"
    assert action_label(("right", "A")) == "right+A"


def test_all_stages_parse() -> None:
    assert len(STAGES) == 32
    assert parse_stage("1-1") == (1, 1)
    assert parse_stage("8-4") == (8, 4)


@pytest.mark.parametrize("stage", ["", "0-1", "9-1", "1-5", "11", "1-1 "])
def test_unknown_stage_is_a_configuration_error(stage: str) -> None:
    with pytest.raises(ConfigError, match="unknown stage"):
        parse_stage(stage)


def test_unknown_action_set_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="right_only, simple, complex, extended"):
        actions_of("SIMPLE_MOVEMENT")


@pytest.mark.parametrize(("environments", "expected_s"), [(1, 180), (3, 180), (8, 480)])
def test_construction_deadline_grows_with_the_queue(environments: int, expected_s: float) -> None:
    assert construction_deadline_s(environments) == expected_s
