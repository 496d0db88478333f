"""What the bytes of the console's RAM mean; pure functions that return plain Python values.

The meanings are those of gym-super-mario-bros 7.4, whose arithmetic in uint8 is repaired here:
every byte passes through `int()` before anything is computed with it.
"""

from __future__ import annotations

from typing import Final, Protocol, SupportsInt

PLAYER_STATE: Final = 0x000E
FLOAT_STATE: Final = 0x001D
X_PAGE: Final = 0x006D
X_IN_PAGE: Final = 0x0086
Y_VIEWPORT: Final = 0x00B5
AREA_DATA: Final = 0x00E7
SPRITES: Final = 0x0200
X_ON_SCREEN: Final = 0x03AD
Y_PIXEL: Final = 0x03B8
CHANGE_AREA_TIMER: Final = 0x06DE
SCREEN_LEFT_PAGE: Final = 0x071A
SCREEN_LEFT_IN_PAGE: Final = 0x071C
POWER: Final = 0x0756
LIVES: Final = 0x075A
STAGE: Final = 0x075C
WORLD: Final = 0x075F
AREA: Final = 0x0760
GAME_MODE: Final = 0x0770
GAME_TASK: Final = 0x0772
SCROLLED: Final = 0x0775
PRELEVEL_TIMER: Final = 0x07A0
SCORE_DIGITS: Final = 0x07DE
COIN_DIGITS: Final = 0x07ED
TIME_DIGITS: Final = 0x07F8

_ENEMY_TYPES: Final = range(0x0016, 0x001B)
_BOWSER: Final = 0x2D
_CASTLE_FLAG: Final = 0x31
_CLIMBING: Final = 3
_END_OF_WORLD: Final = 2
_PLAYING: Final = 1
_IN_A_STAGE: Final = 3
_UNDER_CONTROL: Final = 0x08
_LOSING_A_LIFE: Final = 0x06
_DYING: Final = 0x0B
# Entering or leaving an area, on a vine, in a pipe, walking by himself. Growing, shrinking and
# gaining fire are not among them: there the agent acts while the game is frozen.
_BUSY: Final = frozenset({0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x07})


AreaKey = tuple[int, int, int]
"""World and stage from 0, and the address of the map that is on the screen.

The game's other pointer, at 0x0750, is no name for a place: it already holds the target of the
next pipe while Mario walks towards it.
"""


class Ram(Protocol):
    """Anything with bytes by address: a live memory view, an array, or plain bytes in a test."""

    def __getitem__(self, address: int, /) -> SupportsInt: ...


def _decimal(ram: Ram, address: int, digits: int) -> int:
    """A number that the game keeps as one decimal digit per byte, most significant first."""
    value = 0
    for offset in range(digits):
        value = value * 10 + int(ram[address + offset])
    return value


def world(ram: Ram) -> int:
    return int(ram[WORLD]) + 1


def stage(ram: Ram) -> int:
    return int(ram[STAGE]) + 1


def area(ram: Ram) -> int:
    return int(ram[AREA]) + 1


def area_key(ram: Ram) -> AreaKey:
    address = int(ram[AREA_DATA + 1]) * 0x100 + int(ram[AREA_DATA])
    return int(ram[WORLD]), int(ram[STAGE]), address


def score(ram: Ram) -> int:
    return _decimal(ram, SCORE_DIGITS, 6)


def time_left(ram: Ram) -> int:
    """Ticks of the game's own clock, about 24 frames each; 0 before a stage begins."""
    # Written out because it is read in every frame.
    return int(ram[TIME_DIGITS]) * 100 + int(ram[TIME_DIGITS + 1]) * 10 + int(ram[TIME_DIGITS + 2])


def coins(ram: Ram) -> int:
    return _decimal(ram, COIN_DIGITS, 2)


def lives(ram: Ram) -> int:
    """Lives in reserve: 2, 1, 0, then 255 when the game is over."""
    return int(ram[LIVES])


def x_position(ram: Ram) -> int:
    """Pixels from the left end of the present area; other areas of a stage count from 0 again."""
    return int(ram[X_PAGE]) * 0x100 + int(ram[X_IN_PAGE])


def y_position(ram: Ram) -> int:
    """Pixels above the bottom of the screen; more than 255 when Mario is above its top."""
    height = 255 - int(ram[Y_PIXEL])
    return 255 + height if int(ram[Y_VIEWPORT]) < 1 else height


def status(ram: Ram) -> str:
    return {0: "small", 1: "tall"}.get(int(ram[POWER]), "fireball")


def is_dying(ram: Ram) -> bool:
    """In the death animation, or below the screen."""
    return int(ram[PLAYER_STATE]) == _DYING or int(ram[Y_VIEWPORT]) > 1


def is_dead(ram: Ram) -> bool:
    return int(ram[PLAYER_STATE]) == _LOSING_A_LIFE


def is_busy(ram: Ram) -> bool:
    """The game moves Mario by itself and ignores the controller."""
    return int(ram[PLAYER_STATE]) in _BUSY


def is_under_control(ram: Ram) -> bool:
    """The stage is on the screen and the controller moves Mario."""
    is_in_a_stage = int(ram[GAME_MODE]) == _PLAYING and int(ram[GAME_TASK]) == _IN_A_STAGE
    return is_in_a_stage and int(ram[PLAYER_STATE]) == _UNDER_CONTROL


def screen_left(ram: Ram) -> int:
    """Pixels from the left end of the area to the left edge of the screen as it is drawn.

    The game scrolls, then draws with the next frame, so what it scrolled last is not seen yet.
    """
    left = int(ram[SCREEN_LEFT_PAGE]) * 0x100 + int(ram[SCREEN_LEFT_IN_PAGE])
    return max(0, left - int(ram[SCROLLED]))


def is_world_over(ram: Ram) -> bool:
    return int(ram[GAME_MODE]) == _END_OF_WORLD


def is_stage_over(ram: Ram) -> bool:
    """Mario slides down the flagpole; without a flag or Bowser near, climbing means a vine."""
    if int(ram[FLOAT_STATE]) != _CLIMBING:
        return False
    return any(int(ram[address]) in (_BOWSER, _CASTLE_FLAG) for address in _ENEMY_TYPES)


def has_flag(ram: Ram) -> bool:
    """The stage is won, by its flag or by the axe at the end of a world."""
    return is_world_over(ram) or is_stage_over(ram)
