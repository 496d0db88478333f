from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from launch.control_room.episode_log import EpisodeLog
from launch.control_room.level_maps import picture_of, read_maps, stage_map, stage_names
from launch.control_room.run_reader import RunReader
from tests.run_folders import make_run, write_lines


def actor_map(**part: object) -> dict[str, object]:
    return {"time": 1.0, "stages": {"1-1": {"bin_pixels": 16, **part}}}


def episode(**values: object) -> dict[str, object]:
    place = {"stage": "1-1", "max_x": 700, "final_x": 690, "final_y": 79}
    return {**place, "cleared": False, "truncated": False, "global_step": 10, **values}


def test_actors_are_added_up() -> None:
    maps = [
        actor_map(visits={"37:0": 5, "2:1": 1}, deaths=[[37, 10, 79]], frontier=[[10, 37, 100]]),
        actor_map(
            visits={"37:0": 7},
            deaths=[[37, 20, None]],
            best={"ground": 860, "max_x": {"37": 900}, "path": [[37, 1, 79]]},
            frontier=[[5, 37, 50], [20, 37, 300], [20, 2, 90]],
        ),
    ]

    told = stage_map(maps, "1-1", EpisodeLog())

    assert told["visits"] == {"37:0": 12, "2:1": 1}
    assert told["area"] == 37
    assert told["deaths"] == [[37, 10, 79], [37, 20, None]]
    assert told["best"] == {"max_x": {"37": 900.0}, "path": [[37, 1, 79]]}
    rising = [(5.0, 50.0), (10.0, 100.0), (20.0, 300.0)]
    assert told["frontier"] == {"37": rising, "2": [(20.0, 90.0)]}


def test_the_best_episode_is_that_with_the_most_ground_whatever_its_x() -> None:
    maps = [
        actor_map(best={"ground": 2_000, "max_x": {"37": 1_000, "2": 200}, "path": [[2, 200, 79]]}),
        actor_map(best={"ground": 1_400, "max_x": {"37": 1_440}, "path": [[37, 1_440, 79]]}),
    ]

    told: Any = stage_map(maps, "1-1", EpisodeLog())

    assert told["best"]["max_x"] == {"37": 1_000.0, "2": 200.0}
    assert told["best"]["path"] == [[2, 200, 79]]


def test_the_frontier_has_one_place_for_each_number_of_steps() -> None:
    maps = [
        actor_map(frontier=[[10, 37, 100], [20, 37, 300]]),
        actor_map(frontier=[[10, 37, 80], [20, 37, 900]]),
    ]

    told = stage_map(maps, "1-1", EpisodeLog())

    # A chart finds its range from places that differ.
    assert told["frontier"] == {"37": [(10.0, 100.0), (20.0, 900.0)]}


def test_without_maps_episodes_tell_where_runs_were_lost() -> None:
    episodes = EpisodeLog()
    for record in (
        episode(),
        episode(cleared=True, max_x=3_161, global_step=20),
        episode(truncated=True),
        episode(final_x=None, final_y=None, max_x=50),
        episode(stage="<b>"),
        episode(max_x="far"),
    ):
        episodes.append(record)

    told = stage_map([], "1-1", episodes)

    assert told["deaths"] == [[0, 690.0, 79.0], [0, 50.0, None]]
    assert told["frontier"] == {"0": [(10.0, 700.0), (20.0, 3_161.0)]}
    assert stage_names([], episodes) == ["1-1"]


def test_maps_of_strangers_are_taken_apart_carefully() -> None:
    odd: list[Any] = [
        {"stages": 3},
        {"stages": {"1-1": [], "../x": {}}},
        actor_map(visits=[1], deaths={"a": 1}, best=3, frontier="no"),
        actor_map(best={"ground": 9, "max_x": {"<b>": 1, "37": "far"}}, frontier=[[1, 2], "f"]),
        actor_map(visits={"x" * 99: "many", "37:1": 4}, deaths=[[1], "d", [37, "a", 2]]),
    ]

    told = stage_map(odd, "1-1", EpisodeLog())

    assert told["visits"] == {"37:1": 4}
    assert told["deaths"] == [[37.0, None, 2.0]]
    assert told["best"] == {"max_x": {}, "path": []}
    assert stage_names(odd, EpisodeLog()) == ["1-1"]


def test_long_histories_are_cut() -> None:
    deaths = [[37, n, 79] for n in range(9_000)]

    told: Any = stage_map([actor_map(deaths=deaths)], "1-1", EpisodeLog())

    assert len(told["deaths"]) == 6_000
    assert told["deaths"][-1] == [37, 8_999, 79]


def test_a_picture_needs_both_its_files(tmp_path: Path) -> None:
    record = {"area": 37, "x0": 0, "width": 512, "height": 240, "covered": [[0, 512]]}
    (tmp_path / "1-1.json").write_text(json.dumps(record), encoding="utf-8")

    without = picture_of(tmp_path, "1-1")
    (tmp_path / "1-1.png").write_bytes(b"png")

    assert without is None
    assert {**(picture_of(tmp_path, "1-1") or {})}["width"] == 512.0


def test_only_maps_of_actors_are_read(tmp_path: Path) -> None:
    for name in ("actor-0", "1-1", ".tmp-actor-1", "evil<b>"):
        (tmp_path / f"{name}.json").write_text("{}", encoding="utf-8")

    assert read_maps(tmp_path) == [{}]
    assert read_maps(tmp_path / "missing") == []


def test_a_reader_joins_maps_episodes_and_picture(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    write_lines(paths.root / "episodes.jsonl", [episode(), episode(stage="1-2")])
    reader = RunReader(paths)
    reader.look()

    assert reader.stages() == ["1-1", "1-2"]
    assert reader.stage("1-1")["picture"] is None
    assert reader.state()["episodes"] == 2


@pytest.mark.parametrize("area", ["²", "9" * 20, "-1", ""])
def test_an_odd_area_is_no_fault(area: str) -> None:
    told = stage_map([actor_map(visits={f"{area}:0": 5})], "1-1", EpisodeLog())

    assert told["area"] == 0
