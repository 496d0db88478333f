from __future__ import annotations

from actor.env.new_ground import NewGround
from actor.env.ram import AREA_DATA, X_IN_PAGE, X_PAGE


def ram_at(x: int, area: int = 1) -> bytes:
    ram = bytearray(0x800)
    ram[X_PAGE], ram[X_IN_PAGE] = divmod(x, 0x100)
    ram[AREA_DATA] = area
    return bytes(ram)


def test_only_ground_beyond_the_farthest_counts() -> None:
    ground = NewGround(ram_at(40))

    news = [ground.note(ram_at(x)) for x in (50, 45, 50, 60)]

    assert news == [True, False, False, True]
    assert ground.distance_pixels == 20


def test_a_loop_back_is_counted_and_the_same_ground_pays_once() -> None:
    ground = NewGround(ram_at(1_500))
    for x in range(1_500, 1_601, 20):
        ground.note(ram_at(x))

    ground.note(ram_at(1_600 - 1_024))
    for x in range(580, 1_601, 20):
        assert not ground.note(ram_at(x))
    is_new = ground.note(ram_at(1_610))

    assert is_new
    assert ground.loop_backs == 1
    assert ground.distance_pixels == 110


def test_a_pipe_to_another_area_is_new_but_no_distance() -> None:
    ground = NewGround(ram_at(900))

    entered = ground.note(ram_at(30, area=2))
    ground.note(ram_at(50, area=2))
    came_back = ground.note(ram_at(2_600))
    ground.note(ram_at(2_605))

    assert entered
    assert not came_back
    assert ground.distance_pixels == 25
    assert ground.loop_backs == 0


def test_a_leap_within_an_area_is_a_new_place_not_distance() -> None:
    ground = NewGround(ram_at(100))

    ground.note(ram_at(1_000))
    ground.note(ram_at(1_010))

    assert ground.distance_pixels == 10
