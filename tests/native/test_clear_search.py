from __future__ import annotations

import random
from pathlib import Path

import pytest

from actor.env import ram as memory
from actor.env.native_core import NativeCore
from actor.env.repetition import repeat
from common.traces import read_trace
from tests.native import find_clears
from tests.native.clear_search import Archive, ClearSearch, Way, place_of

_START = Way(None, (), 0)


def _core_at(x: int) -> NativeCore:
    core = NativeCore()
    core.ram[memory.X_PAGE], core.ram[memory.X_IN_PAGE] = divmod(x, 256)
    return core


def test_a_way_is_put_together_from_its_pieces() -> None:
    way = _START.longer((1, 2)).longer((3,)).longer((4, 4))

    assert way.whole() == (1, 2, 3, 4, 4)
    assert way.agent_steps == 5


def test_a_snapshot_brings_everything_back() -> None:
    core = NativeCore()
    core.step(0, 40)
    state = core.snapshot()
    core.step(8, 5)
    expected = core.snapshot()

    core.restore(state)
    core.step(8, 5)

    assert core.snapshot() == expected != state


def test_a_new_place_is_kept_and_a_known_one_only_for_a_shorter_way() -> None:
    archive = Archive()
    core = _core_at(700)
    first, longer, shorter = (_START.longer((1,) * n) for n in (5, 6, 4))

    archive.offer(core, first)
    (cell,) = archive.cells.values()
    archive.offer(core, longer)
    assert cell.way is first
    archive.offer(core, shorter)
    assert cell.way is shorter

    archive.offer(_core_at(732), longer)
    assert len(archive.cells) == 2
    assert archive.room_order == [(0, 2)]


@pytest.mark.parametrize(
    ("address", "value"), [(0x0750, 1), (0x0086, 32), (0x00CE, 32), (0x06D9, 1), (0x0500, 0xC4)]
)
def test_area_position_maze_and_used_blocks_make_another_place(address: int, value: int) -> None:
    core = NativeCore()
    before = place_of(core.ram)

    core.ram[address] = value

    assert place_of(core.ram) != before


def test_rooms_found_lately_are_chosen_more_often_and_tried_cells_less() -> None:
    archive = Archive()
    for room in range(10):
        for x in (0, 40):
            archive.offer(_core_at(room * 256 + x), _START)
    tired = archive.cells[place_of(_core_at(9 * 256).ram)]
    tired.visits = 50
    generator = random.Random(0)

    chosen = [archive.choose(generator) for _ in range(500)]

    newest = archive.cells[place_of(_core_at(9 * 256 + 40).ram)]
    oldest = archive.cells[place_of(_core_at(0).ram)]
    assert chosen.count(newest) > 3 * chosen.count(oldest) > 0
    assert chosen.count(newest) > 5 * chosen.count(tired)


def test_a_search_finds_the_axe_of_the_first_castle_and_the_way_can_be_repeated() -> None:
    search = ClearSearch("1-4", seed=0)

    trace = next(found for found in iter(search.explore, 0) if found is not None)

    again = repeat(trace, NativeCore())
    assert again.has_flag
    assert again.ram_sha256 == trace.final_ram_sha256
    assert search.agent_steps < 20_000


def test_the_command_writes_what_it_finds(tmp_path: Path) -> None:
    assert find_clears.main(["--stages", "1-4", "--output", str(tmp_path)]) == 0

    trace = read_trace(tmp_path / "1-4.json")
    assert trace.stage == "1-4"
    assert find_clears.is_repeatable(trace)


def test_the_command_says_what_it_did_not_find(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--stages", "8-4", "--minutes", "0.001", "--output", str(tmp_path)]

    assert find_clears.main(flags) == 1

    assert "not found: 8-4" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flags", [["--stages", "9-9"], ["--minutes", "0"]])
def test_wrong_settings_end_with_two(flags: list[str]) -> None:
    assert find_clears.main(flags) == 2
