"""A moment of the game laid out for a terminal: the picture, and what the agent thinks; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from common.moments import Moment, bar_lengths
from launch.half_blocks import RESET, Area, fit, half_blocks

PANEL_COLUMNS: Final = 30
WIDE_COLUMNS: Final = 76
"""From here on the panel is beside the picture, otherwise two lines of it below."""
_GAP: Final = "  "
_BAR_COLUMNS: Final = PANEL_COLUMNS - 2
_CHOSEN: Final = "\x1b[30;48;2;240;160;40m"
_OTHER: Final = "\x1b[97;48;2;70;82;110m"


def lay_out(moment: Moment, area: Area, notes: Sequence[str]) -> list[str]:
    """The lines of the screen; `notes` are below the values of the actions.

    Where there is no room for these, as many notes as fit are told until the first action.
    """
    if area.columns < WIDE_COLUMNS:
        picture = half_blocks(fit(moment.screen, Area(area.columns, area.rows - 2)))
        return [*picture, *(line[: area.columns] for line in _short(moment, notes))]
    room = Area(area.columns - PANEL_COLUMNS - len(_GAP), area.rows)
    pixels = fit(moment.screen, room)
    picture, beside = half_blocks(pixels), panel(moment, notes)
    blank = " " * pixels.shape[1]
    rows = min(area.rows, max(len(picture), len(beside)))
    picture += [blank] * (rows - len(picture))
    beside += [""] * (rows - len(beside))
    return [left + _GAP + right for left, right in zip(picture, beside, strict=False)][:rows]


def panel(moment: Moment, notes: Sequence[str]) -> list[str]:
    facts = [
        f"stage {moment.stage}   x {moment.x}",
        f"{moment.seconds:.1f} s   clock {moment.time_left}",
        "flag!" if moment.cleared else moment.action_label,
        "",
    ]
    return [*facts, *_bars(moment), "", *notes]


def _bars(moment: Moment) -> list[str]:
    lines = []
    lengths = bar_lengths(moment.q_values, _BAR_COLUMNS)
    for index, (value, length) in enumerate(zip(moment.q_values, lengths, strict=True)):
        text = f"{moment.action_labels[index]:<14}{value:>{_BAR_COLUMNS - 14}.2f}"
        colour = _CHOSEN if index == moment.action else _OTHER
        lines.append(f"{colour}{text[:length]}{RESET}{text[length:]}")
    return lines


def _short(moment: Moment, notes: Sequence[str]) -> list[str]:
    value = (
        moment.q_values[moment.action] if moment.q_values and moment.action is not None else None
    )
    told = "" if value is None else f"   Q {value:.2f}"
    state = "flag!" if moment.cleared else moment.action_label
    if moment.action is None and notes:
        state = "   ".join(" ".join(note.split()) for note in notes if note)
    return [
        f"{moment.stage}  x {moment.x}  {moment.seconds:.1f} s  clock {moment.time_left}",
        f"{state}{told}",
    ]
