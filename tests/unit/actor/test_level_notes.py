from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from actor.level_notes import WRITE_INTERVAL_S, EpisodeEnd, LanePath, LevelNotes
from actor.stage_notes import MAX_PATH
from tests.fake_clock import FakeClock


def end(ground: int, *, is_death: bool = True, from_start: bool = True) -> EpisodeEnd:
    return EpisodeEnd(stage="1-1", ground=ground, is_death=is_death, from_start=from_start)


def play(path: LanePath, xs: list[int], last: EpisodeEnd) -> None:
    path.begin()
    for x in xs:
        path.note("1-1", {"x_pos": x, "y_pos": 79, "area": 5})
    path.end(last)


def stage_of(notes: LevelNotes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(json.dumps(notes.as_json()))["stages"]["1-1"]
    return told


def test_time_and_deaths_are_noted_where_they_happened(tmp_path: Path) -> None:
    notes = LevelNotes(tmp_path / "actor-0.json")

    play(LanePath(notes), [40, 44, 50], end(10))

    told = stage_of(notes)
    assert told["visits"] == {"5:2": 2, "5:3": 1}
    assert told["deaths"] == [[5, 50, 79]]


def test_a_fall_out_of_the_screen_is_below_it_not_above(tmp_path: Path) -> None:
    notes = LevelNotes(tmp_path / "actor-0.json")
    path = LanePath(notes)

    path.begin()
    for height in (79, 40, 12, 253):
        path.note("1-1", {"x_pos": 1_128, "y_pos": height, "area": 5})
    path.end(end(10))

    assert stage_of(notes)["deaths"] == [[5, 1_128, -3]]


def test_another_area_may_be_any_height_away(tmp_path: Path) -> None:
    notes = LevelNotes(tmp_path / "actor-0.json")
    path = LanePath(notes)

    path.begin()
    path.note("1-1", {"x_pos": 900, "y_pos": 20, "area": 5})
    path.note("1-1", {"x_pos": 40, "y_pos": 220, "area": 6})
    path.end(end(10))

    assert stage_of(notes)["deaths"] == [[6, 40, 220]]


def test_a_clear_is_no_death(tmp_path: Path) -> None:
    notes = LevelNotes(tmp_path / "actor-0.json")

    play(LanePath(notes), [40], end(10, is_death=False))

    assert stage_of(notes)["deaths"] == []


def test_the_best_way_is_that_of_an_episode_from_the_start(tmp_path: Path) -> None:
    notes = LevelNotes(tmp_path / "actor-0.json")
    path = LanePath(notes)

    notes.run_agent_steps = 100
    play(path, [40, 80], end(40))
    play(path, [40, 60], end(20))
    notes.run_agent_steps = 200
    play(path, [900, 990], end(990, from_start=False))
    play(path, [40, 95], end(55))

    told = stage_of(notes)
    assert told["best"]["path"] == [[5, 40, 79], [5, 95, 79]]
    assert told["frontier"] == [[100, 5, 80], [200, 5, 95]]


def test_the_farthest_x_is_that_of_the_game_in_each_area(tmp_path: Path) -> None:
    notes = LevelNotes(tmp_path / "actor-0.json")
    path = LanePath(notes)

    path.begin()
    for area, x in ((5, 40), (5, 900), (6, 24), (6, 200), (5, 2_600), (5, 2_590)):
        path.note("1-1", {"x_pos": x, "y_pos": 79, "area": area})
    path.end(end(1_036))

    told = stage_of(notes)
    assert told["best"]["max_x"] == {"5": 2_600, "6": 200}
    assert told["frontier"] == [[0, 5, 2_600], [0, 6, 200]]


def test_a_death_late_in_a_long_episode_is_where_it_happened(tmp_path: Path) -> None:
    notes = LevelNotes(tmp_path / "actor-0.json")

    play(LanePath(notes), [*range(MAX_PATH), 9_000], end(10))

    assert stage_of(notes)["deaths"] == [[5, 9_000, 79]]


def test_an_actor_that_is_started_again_goes_on_with_its_map(tmp_path: Path) -> None:
    clock, file = FakeClock(), tmp_path / "actor-0.json"
    before = LevelNotes(file, clock=clock)
    play(LanePath(before), [40, 80], end(40))
    clock.advance(WRITE_INTERVAL_S)
    before.write_if_due()

    again = LevelNotes(file, clock=clock)
    same = stage_of(again)
    again.run_agent_steps = 300
    play(LanePath(again), [40, 60], end(20))
    play(LanePath(again), [40, 99], end(59))

    told = stage_of(again)
    assert same == stage_of(before)
    assert told["visits"] == {"5:2": 3, "5:3": 1, "5:5": 1, "5:6": 1}
    assert told["deaths"] == [[5, 80, 79], [5, 60, 79], [5, 99, 79]]
    assert told["best"]["max_x"] == {"5": 99}
    assert told["frontier"] == [[0, 5, 80], [300, 5, 99]]


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"\xff", b"[1]", b"{}", b'{"stages": 3}', b'{"stages": {"1-1": 3}}'),
        *(b'{"stages": {"1-1": {"bin_pixels": 8}}}', b"[" * 100_000),
        b'{"stages": {"1-1": {"bin_pixels": 16, "visits": {"5": 1}, "best": {"ground": 1}}}}',
    ],
)
def test_a_broken_map_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "actor-0.json"
    file.write_bytes(content)
    notes = LevelNotes(file)

    play(LanePath(notes), [40], end(10))

    assert stage_of(notes)["visits"] == {"5:2": 1}


def test_the_file_is_replaced_now_and_then(tmp_path: Path) -> None:
    clock = FakeClock()
    file = tmp_path / "maps" / "actor-0.json"
    notes = LevelNotes(file, clock=clock)
    play(LanePath(notes), [40], end(10))

    notes.write_if_due()
    too_early = file.exists()
    clock.advance(WRITE_INTERVAL_S)
    notes.write_if_due()

    assert not too_early
    assert json.loads(file.read_text())["stages"]["1-1"]["visits"] == {"5:2": 1}


def test_a_disk_that_takes_nothing_costs_the_map_only(tmp_path: Path) -> None:
    clock = FakeClock()
    (tmp_path / "maps").write_text("in the way")
    notes = LevelNotes(tmp_path / "maps" / "actor-0.json", clock=clock)
    play(LanePath(notes), [40], end(10))
    clock.advance(WRITE_INTERVAL_S)

    notes.write_if_due()

    assert (tmp_path / "maps").read_text() == "in the way"
