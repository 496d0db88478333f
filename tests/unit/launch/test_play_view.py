from __future__ import annotations

import re

import pytest

from launch.game_keys import HELP
from launch.half_blocks import Area
from launch.play_view import WIDE_COLUMNS, lay_out
from tests.moment_factory import make_moment

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def plain(lines: list[str]) -> list[str]:
    return [COLOURS.sub("", line) for line in lines]


@pytest.mark.parametrize(
    "area", [Area(200, 60), Area(WIDE_COLUMNS, 24), Area(60, 40), Area(40, 16)]
)
def test_everything_fits_the_terminal(area: Area) -> None:
    lines = plain(lay_out(make_moment(7), area, ("note",) * 50))

    assert len(lines) <= area.rows
    assert max(map(len, lines)) <= area.columns


def test_beside_the_picture_are_facts_values_and_notes() -> None:
    lines = lay_out(make_moment(12), Area(120, 40), ("q  end",))

    text = "\n".join(plain(lines))
    for expected in ("stage 1-1   x 12", "clock 388", "right+A", "3.00", "q  end"):
        assert expected in text
    chosen = next(line for line in lines if "3.00" in COLOURS.sub("", line))
    assert "240;160;40" in chosen


def test_a_narrow_terminal_gets_the_facts_in_two_lines() -> None:
    *_, facts, action = plain(lay_out(make_moment(12), Area(50, 30), ("q  end",)))

    assert facts == "1-1  x 12  0.8 s  clock 388"
    assert action == "right   Q 3.00"


def test_before_the_first_action_nothing_is_chosen() -> None:
    *_, action = plain(lay_out(make_moment(0, action=None), Area(50, 30), ()))

    assert action == "-"


def test_a_narrow_terminal_tells_how_to_begin_before_the_first_action() -> None:
    notes = ("episode 1 of 3", "", *HELP)

    *_, said = plain(lay_out(make_moment(0, action=None), Area(50, 30), notes))
    *_, later = plain(lay_out(make_moment(1), Area(50, 30), notes))

    assert said.startswith("episode 1 of 3   any key begins")
    assert later == "right   Q 3.00"


@pytest.mark.parametrize("columns", [40, 50, WIDE_COLUMNS - 1])
def test_a_person_reads_at_every_width_that_a_key_begins(columns: int) -> None:
    notes = ("episode 10 of 10", "", *HELP)

    lines = plain(lay_out(make_moment(0, action=None), Area(columns, 30), notes))

    assert "any key begins" in lines[-1]
    assert max(map(len, lines)) <= columns
