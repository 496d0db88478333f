from __future__ import annotations

from actor.env import ram as memory
from actor.env.scenery import STATUS_BAR_PIXELS, read_scenery

MARIO_TOP, MARIO_LEFT = 176, 100


def stage_ram(left: int = 0, scrolled: int = 0) -> bytearray:
    """A stage under control: nothing on the screen but Mario, who has eight sprites."""
    ram = bytearray(0x800)
    ram[memory.GAME_MODE], ram[memory.GAME_TASK], ram[memory.PLAYER_STATE] = 1, 3, 8
    ram[memory.SCREEN_LEFT_PAGE], ram[memory.SCREEN_LEFT_IN_PAGE] = divmod(left, 0x100)
    ram[memory.SCROLLED] = scrolled
    ram[memory.AREA_DATA], ram[memory.AREA_DATA + 1] = 0x90, 0xA6
    ram[memory.Y_PIXEL], ram[memory.X_ON_SCREEN] = MARIO_TOP, MARIO_LEFT
    for number in range(64):
        put_sprite(ram, number, 0xF8, 0)
    for number in range(8):
        put_sprite(ram, number, MARIO_TOP + number // 2 * 8, MARIO_LEFT + number % 2 * 8)
    return ram


def put_sprite(ram: bytearray, number: int, row_above: int, column: int) -> None:
    ram[memory.SPRITES + 4 * number] = row_above
    ram[memory.SPRITES + 4 * number + 3] = column


def test_the_level_is_seen_but_for_the_status_bar_and_mario() -> None:
    scenery = read_scenery(stage_ram())

    assert (scenery.area, scenery.left) == (0xA690, 0)
    assert not scenery.visible[:STATUS_BAR_PIXELS].any()
    assert scenery.visible[STATUS_BAR_PIXELS : MARIO_TOP - 8].all()
    assert not scenery.visible[MARIO_TOP : MARIO_TOP + 33, MARIO_LEFT : MARIO_LEFT + 16].any()
    assert scenery.visible[MARIO_TOP, MARIO_LEFT + 24 :].all()


def test_what_was_scrolled_last_is_not_drawn_yet() -> None:
    assert read_scenery(stage_ram(left=0x2FE, scrolled=3)).left == 0x2FB


def test_an_enemy_hides_what_is_behind_it() -> None:
    ram = stage_ram()
    put_sprite(ram, 20, 99, 200)

    assert not read_scenery(ram).visible[100:108, 200:208].any()


def test_without_mario_the_list_is_not_complete_and_tells_nothing() -> None:
    ram = stage_ram()
    put_sprite(ram, 0, 0xF8, 0)  # his head, which comes last

    assert not read_scenery(ram).visible.any()


def test_another_screen_is_no_level() -> None:
    for address, value in ((memory.PLAYER_STATE, 0x0B), (memory.GAME_MODE, 0)):
        ram = stage_ram()
        ram[address] = value

        assert not read_scenery(ram).visible.any()


def test_what_leaves_the_screen_is_not_trusted() -> None:
    assert read_scenery(stage_ram(left=0)).visible[100, :16].all()
    assert not read_scenery(stage_ram(left=500)).visible[100, :16].any()
