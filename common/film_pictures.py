"""Draws the pictures of a film: the screen of the game beside what the agent made of it; pure.

Also the contact sheet: a film at one glance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np

from common.moments import SCREEN_SHAPE, Moment, Picture, bar_lengths

FILM_HEIGHT: Final = 480
FILM_WIDTH: Final = 720
SHEET_COLUMNS: Final = 4
SHEET_ROWS: Final = 3

_PANEL_LEFT: Final = SCREEN_SHAPE[1] * FILM_HEIGHT // SCREEN_SHAPE[0]
_PANEL_PIXELS: Final = FILM_WIDTH - _PANEL_LEFT
_MARGIN: Final = 12
_LINE_PIXELS: Final = 22
_BARS_TOP: Final = 168
_MAX_BAR_PIXELS: Final = 26
_CAPTION_PIXELS: Final = 20
_SHADE: Final = 48

_Colour = tuple[int, int, int]
_GROUND: Final[_Colour] = (24, 26, 32)
_TEXT: Final[_Colour] = (235, 235, 235)
_FAINT: Final[_Colour] = (150, 155, 165)
_BAR: Final[_Colour] = (70, 82, 110)
_CHOSEN: Final[_Colour] = (240, 160, 40)
_FLAG: Final[_Colour] = (110, 220, 120)


def film_picture(moment: Moment) -> Picture:
    """UInt8[480, 720, 3]: the screen twice as large, and a panel on its right."""
    picture = np.empty((FILM_HEIGHT, FILM_WIDTH, 3), dtype=np.uint8)
    picture[:, _PANEL_LEFT:] = _GROUND
    size = (_PANEL_LEFT, FILM_HEIGHT)
    picture[:, :_PANEL_LEFT] = cv2.resize(moment.screen, size, interpolation=cv2.INTER_NEAREST)
    left = _PANEL_LEFT + _MARGIN
    _write(picture, f"stage {moment.stage}", (left, 30), _TEXT, size=0.65)
    facts = (f"x {moment.x}", f"{moment.seconds:.1f} s", f"clock {moment.time_left}")
    for line, fact in enumerate(facts):
        _write(picture, fact, (left, 58 + line * _LINE_PIXELS), _FAINT)
    state, colour = ("FLAG!", _FLAG) if moment.cleared else (moment.action_label, _CHOSEN)
    _write(picture, state, (left, 58 + len(facts) * _LINE_PIXELS + 8), colour, size=0.6)
    if moment.q_values:
        _draw_bars(picture, moment)
    return picture


def _draw_bars(picture: Picture, moment: Moment) -> None:
    """The value of every action; the one that was taken in another colour."""
    values, left = moment.q_values, _PANEL_LEFT + _MARGIN
    most = _PANEL_PIXELS - 2 * _MARGIN
    pitch = min(_MAX_BAR_PIXELS, (FILM_HEIGHT - _BARS_TOP - _MARGIN) // len(values))
    size = 0.42 if pitch >= _LINE_PIXELS else 0.36
    for index, length in enumerate(bar_lengths(values, most)):
        top = _BARS_TOP + index * pitch
        colour = _CHOSEN if index == moment.action else _BAR
        cv2.rectangle(picture, (left, top), (left + length, top + pitch - 4), colour, cv2.FILLED)
        baseline = top + pitch // 2 + 3
        ink = _GROUND if index == moment.action and length > most // 2 else _TEXT
        _write(picture, moment.action_labels[index], (left + 4, baseline), ink, size=size)
        ink = _GROUND if index == moment.action and length > most - 40 else _TEXT
        _write(picture, f"{values[index]:6.2f}", (left + most - 46, baseline), ink, size=size)


def small_picture(moment: Moment) -> Picture:
    """UInt8[260, 256, 3]: the screen as it is with a line below it, in few colours."""
    height, width, _ = SCREEN_SHAPE
    picture = np.empty((height + _CAPTION_PIXELS, width, 3), dtype=np.uint8)
    picture[:height] = moment.screen
    picture[height:] = _GROUND
    _write(picture, _caption(moment), (6, height + 14), _TEXT, size=0.4)
    # The edges of letters have many shades, which would take the place of colours of the game.
    picture[height:] = picture[height:] // _SHADE * _SHADE
    return picture


def _caption(moment: Moment) -> str:
    state = "flag" if moment.cleared else moment.action_label
    return f"{moment.stage}  x {moment.x}  {moment.seconds:.1f} s  {state}"


def _write(
    picture: Picture, text: str, place: tuple[int, int], colour: _Colour, *, size: float = 0.5
) -> None:
    cv2.putText(picture, text, place, cv2.FONT_HERSHEY_SIMPLEX, size, colour, 1, cv2.LINE_AA)


class SheetMoments:
    """Keeps a few moments of an episode of unknown length, evenly spread, and its newest one."""

    def __init__(self, count: int = SHEET_COLUMNS * SHEET_ROWS) -> None:
        self._count = count
        self._every = 1
        self._seen = 0
        self._kept: list[Moment] = []
        self._newest: Moment | None = None

    def add(self, moment: Moment) -> None:
        if self._seen % self._every == 0:
            self._kept.append(moment)
        self._seen += 1
        self._newest = moment
        if len(self._kept) == 2 * self._count:
            self._kept = self._kept[::2]
            self._every *= 2

    def chosen(self) -> list[Moment]:
        if self._newest is None:
            return []
        kept = [moment for moment in self._kept if moment is not self._newest]
        count = min(self._count - 1, len(kept))
        places = np.linspace(0, len(kept) - 1, count).round().astype(int).tolist()
        return [*(kept[place] for place in places), self._newest]


def contact_sheet(moments: Sequence[Moment]) -> Picture:
    """Small screens in reading order, each with its place and time below it."""
    height, width, _ = SCREEN_SHAPE
    columns = min(SHEET_COLUMNS, max(1, len(moments)))
    rows = -(-len(moments) // columns)
    sheet = np.empty((rows * (height + _CAPTION_PIXELS), columns * width, 3), dtype=np.uint8)
    sheet[:] = _GROUND
    for number, moment in enumerate(moments):
        top = number // columns * (height + _CAPTION_PIXELS)
        left = number % columns * width
        sheet[top : top + height, left : left + width] = moment.screen
        _write(sheet, _caption(moment), (left + 6, top + height + 14), _TEXT, size=0.4)
    return sheet


def png_bytes(picture: Picture) -> bytes:
    """Of RGB, or of RGBA where the last axis has four values."""
    with_alpha = picture.shape[2] > SCREEN_SHAPE[2]
    order = cv2.COLOR_RGBA2BGRA if with_alpha else cv2.COLOR_RGB2BGR
    encoded: bytes = cv2.imencode(".png", cv2.cvtColor(picture, order))[1].tobytes()
    return encoded
