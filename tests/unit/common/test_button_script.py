from __future__ import annotations

import pytest

from common.button_script import Hold, parse_script
from common.errors import ConfigError


def test_buttons_are_found_in_the_action_set_in_any_order_and_case() -> None:
    assert parse_script("RIGHT+B:180, b+right:4,A:8,NOOP:1", "simple") == (
        Hold(3, 180),
        Hold(3, 4),
        Hold(5, 8),
        Hold(0, 1),
    )


def test_nothing_is_an_empty_script() -> None:
    assert parse_script("", "simple") == ()


@pytest.mark.parametrize(
    ("text", "place", "why"),
    [
        ("JUMP:x", 1, "JUMP"),
        ("RIGHT:8,JUMP:4", 9, "JUMP"),
        ("RIGHT:8,A+JUMP:4", 11, "JUMP"),
        ("RIGHT:x", 7, "frames above 0"),
        ("A:8,RIGHT:0", 11, "frames above 0"),
        ("A:8,", 5, "BUTTONS:FRAMES"),
        ("RIGHT", 1, "BUTTONS:FRAMES"),
        ("A:8,UP:3", 5, "not among the actions of simple"),
        ("A:-3", 3, "frames above 0"),
        ("A:²", 3, "frames above 0"),
    ],
)
def test_a_mistake_is_refused_with_its_place(text: str, place: int, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"at character {place}, .*{why}"):
        parse_script(text, "simple")


def test_a_script_longer_than_an_episode_is_refused() -> None:
    with pytest.raises(ConfigError, match="20000 frames"):
        parse_script("A:20001", "simple")
