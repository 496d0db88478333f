from __future__ import annotations

import numpy as np
import pytest

from actor.env import ram as memory


def _ram_with(values: dict[int, int]) -> bytes:
    content = bytearray(0x800)
    for address, value in values.items():
        content[address] = value
    return bytes(content)


def test_x_position_spans_pages_without_overflow() -> None:
    ram = np.frombuffer(_ram_with({0x6D: 12, 0x86: 250}), dtype=np.uint8)

    assert memory.x_position(ram) == 12 * 256 + 250
    assert type(memory.x_position(ram)) is int


@pytest.mark.parametrize(("viewport", "expected"), [(0, 455), (1, 200), (2, 200)])
def test_y_position_continues_above_the_screen(viewport: int, expected: int) -> None:
    ram = np.frombuffer(_ram_with({0x03B8: 55, 0x00B5: viewport}), dtype=np.uint8)

    assert memory.y_position(ram) == expected


def test_decimal_counters() -> None:
    score = {0x07DE + i: digit for i, digit in enumerate((0, 1, 2, 3, 4, 0))}
    time = {0x07F8: 3, 0x07F9: 9, 0x07FA: 1}
    ram = _ram_with({**score, **time, 0x07ED: 4, 0x07EE: 7})

    assert (memory.score(ram), memory.time_left(ram), memory.coins(ram)) == (12340, 391, 47)


def test_world_stage_and_area_count_from_one() -> None:
    ram = _ram_with({0x075F: 7, 0x075C: 3, 0x0760: 4})

    assert (memory.world(ram), memory.stage(ram), memory.area(ram)) == (8, 4, 5)


@pytest.mark.parametrize(("power", "name"), [(0, "small"), (1, "tall"), (2, "fireball")])
def test_status_names(power: int, name: str) -> None:
    assert memory.status(_ram_with({0x0756: power})) == name


def test_dying_is_the_animation_or_a_fall() -> None:
    assert memory.is_dying(_ram_with({0x0E: 0x0B, 0xB5: 1}))
    assert memory.is_dying(_ram_with({0x0E: 0x08, 0xB5: 2}))
    assert not memory.is_dying(_ram_with({0x0E: 0x08, 0xB5: 1}))
    assert memory.is_dead(_ram_with({0x0E: 0x06}))


@pytest.mark.parametrize("state", range(0x10))
def test_busy_states(state: int) -> None:
    assert memory.is_busy(_ram_with({0x0E: state})) == (state in {0, 1, 2, 3, 4, 5, 7})


@pytest.mark.parametrize("enemy", [0x2D, 0x31])
@pytest.mark.parametrize("slot", range(5))
def test_flag_needs_climbing_and_a_stage_end_in_sight(enemy: int, slot: int) -> None:
    assert memory.has_flag(_ram_with({0x16 + slot: enemy, 0x1D: 3}))
    assert not memory.has_flag(_ram_with({0x16 + slot: enemy, 0x1D: 0}))


def test_a_vine_is_no_flag() -> None:
    assert not memory.has_flag(_ram_with({0x16: 0x2F, 0x1B: 0x31, 0x1D: 3}))


def test_the_end_of_a_world_is_a_flag() -> None:
    assert memory.has_flag(_ram_with({0x0770: 2}))
