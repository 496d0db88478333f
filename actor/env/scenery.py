"""Which part of the screen is the level itself: not the status bar, not Mario, not his enemies.

The console draws everything that moves as sprites of 8 x 8 pixels, and the game keeps their list in
its RAM. So the level behind them can be told apart without knowing any picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from actor.env import ram as memory
from actor.env.core import SCREEN_HEIGHT, SCREEN_WIDTH
from actor.env.ram import Ram

STATUS_BAR_PIXELS: Final = 32
"""Rows at the top that do not scroll."""
_NUM_SPRITES: Final = 64
_SPRITE_BYTES: Final = 4
_SPRITE_PIXELS: Final = 8
# The list is that of the next picture: a sprite may have been this far away when it was drawn.
_MARGIN_ROWS: Final = 8
_MARGIN_COLUMNS: Final = 5
_LEAVING_COLUMNS: Final = 16

Sprite = tuple[int, int]
"""Row of the top and column of the left."""


@dataclass(frozen=True, slots=True, eq=False)
class Scenery:
    """Where the screen lies in its area, and what of it is visible of the level."""

    area: int
    """Address of the map that is on the screen."""
    left: int
    """Pixels from the left end of the area to the first column of the screen."""
    visible: NDArray[np.bool_]
    """Bool[240, 256]; all false while the game shows something else, or nobody can tell."""


def read_scenery(ram: Ram) -> Scenery:
    visible = np.zeros((SCREEN_HEIGHT, SCREEN_WIDTH), dtype=np.bool_)
    left = memory.screen_left(ram)
    sprites = read_sprites(ram)
    if memory.is_under_control(ram) and is_complete(sprites, ram):
        # What leaves the screen on the left is off the list before it is out of sight.
        visible[STATUS_BAR_PIXELS:, _LEAVING_COLUMNS if left else 0 :] = True
        for sprite in sprites:
            _hide(visible, sprite)
    return Scenery(memory.area_key(ram)[-1], left, visible)


def read_sprites(ram: Ram) -> list[Sprite]:
    """The list holds the row above each sprite first and its left column last."""
    addresses = range(memory.SPRITES, memory.SPRITES + _NUM_SPRITES * _SPRITE_BYTES, _SPRITE_BYTES)
    return [(int(ram[one]) + 1, int(ram[one + _SPRITE_BYTES - 1])) for one in addresses]


def is_complete(sprites: list[Sprite], ram: Ram) -> bool:
    """The game empties the list in every frame and enters Mario after his enemies, head last.

    A frame often ends in between, and then the list does not tell what is on the screen.
    """
    top, left = int(ram[memory.Y_PIXEL]) + 1, int(ram[memory.X_ON_SCREEN])
    return (top, left) in sprites and (top, left + _SPRITE_PIXELS) in sprites


def _hide(visible: NDArray[np.bool_], sprite: Sprite) -> None:
    top, left = sprite
    rows = slice(max(0, top - _MARGIN_ROWS), top + _SPRITE_PIXELS + _MARGIN_ROWS)
    columns = slice(max(0, left - _MARGIN_COLUMNS), left + _SPRITE_PIXELS + _MARGIN_COLUMNS)
    visible[rows, columns] = False
