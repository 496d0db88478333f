from __future__ import annotations

import time
from dataclasses import replace

import pytest

from common.errors import BenchmarkFailed
from launch.benchmarks import watching
from launch.benchmarks.measure import Effort, Row
from launch.benchmarks.viewer import Viewer
from launch.benchmarks.watched import Seen, due
from launch.benchmarks.watching import (
    ALONE,
    LOOKS,
    Onlookers,
    Turn,
    WatchPlan,
    Work,
    progress_per_s,
    rows_of,
    thin_looks,
)

LOOK = next(iter(LOOKS))
BROWSER = "one browser, one actor live"


def turn(look: str, per_s: float, cores: float = 0.0) -> Turn:
    rates = {"agent steps": per_s, "updates": per_s / 16}
    return Turn(look=look, rates=rates, room_cores=cores, room_mb=80.0 if cores else 0.0)


def by_name(turns: list[Turn]) -> dict[str, Row]:
    return {row.contender: row for row in rows_of(turns)}


def test_a_machine_that_slows_down_evenly_is_no_cost_of_looking() -> None:
    looks = [ALONE, LOOK] * 6 + [ALONE]

    rows = by_name([turn(look, 500.0 - 10.0 * n, 0.02) for n, look in enumerate(looks)])

    share = rows[f"share of agent steps: {LOOK}"]
    assert share.median == share.low_quartile == share.high_quartile == pytest.approx(1.0)


def test_what_looking_costs_shows_against_the_turns_beside_it() -> None:
    rates = [400.0, 380.0, 400.0, 760.0, 1200.0]
    looks = [ALONE, LOOK, ALONE, LOOK, ALONE]

    rows = by_name([turn(look, rate) for look, rate in zip(looks, rates, strict=True)])

    assert rows[f"share of updates: {LOOK}"].median == pytest.approx(0.95)
    assert rows[f"agent steps: {LOOK}"].ratio == pytest.approx(570 / 400)
    assert rows[f"agent steps: {ALONE}"].unit == "agent step/s"


def test_the_control_room_tells_what_it_used_itself() -> None:
    rows = by_name([turn(ALONE, 400.0), turn(LOOK, 400.0, 0.04), turn(ALONE, 400.0)])

    assert rows[f"processor of the room: {LOOK}"].median == 0.04
    assert rows[f"memory of the room: {LOOK}"].median == 80.0


def test_what_the_viewers_use_of_the_same_machine_is_told_apart_from_the_room() -> None:
    looked = replace(turn(LOOK, 400.0, 0.04), viewer_cores=0.3)
    rows = by_name([turn(ALONE, 400.0), looked, turn(ALONE, 400.0)])

    assert rows[f"processor of the viewers: {LOOK}"].median == 0.3
    assert f"processor of the browser: {LOOK}" not in rows


def test_a_browser_tells_what_it_used() -> None:
    looked = replace(turn(BROWSER, 400.0, 0.04), browser_cores=0.5)
    rows = by_name([turn(ALONE, 400.0), looked, turn(ALONE, 400.0)])

    assert rows[f"processor of the browser: {BROWSER}"].median == 0.5


def test_work_counts_the_processor_time_of_this_process() -> None:
    before, began_s = Work.of(Onlookers()), time.process_time()
    while time.process_time() - began_s < 0.005:
        pass

    assert 0.005 <= Work.of(Onlookers()).viewers_s - before.viewers_s < 0.1


def test_without_a_browser_the_others_look_and_a_note_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plans: list[WatchPlan] = []

    def take_turns(plan: WatchPlan) -> list[Turn]:
        plans.append(plan)
        return [turn(ALONE, 400.0)]

    monkeypatch.setattr(watching, "require_extra", lambda: None)
    monkeypatch.setattr(watching, "missing_browser", lambda: "run: apt-get install chromium")
    monkeypatch.setattr(watching, "take_turns", take_turns)

    result = watching.run(Effort(rounds=1))

    assert result.notes == ("run: apt-get install chromium",)
    assert list(plans[0].looks) == [name for name in LOOKS if name != BROWSER]


def test_without_the_control_room_the_run_is_measured_alone() -> None:
    rows = rows_of([turn(ALONE, 400.0)])

    assert [row.contender for row in rows] == [f"agent steps: {ALONE}", f"updates: {ALONE}"]


def test_the_rate_of_a_part_is_that_of_all_its_processes_between_their_own_heartbeats() -> None:
    beats: list[dict[str, object]] = [
        {"index": 0, "time": 10.0, "progress": 100},
        {"index": 0, "time": 11.0, "progress": 190},
        {"index": 0, "time": 14.0, "progress": 500},
        {"index": 1, "time": 10.5, "progress": 0},
        {"index": 1, "time": 12.5, "progress": 100},
    ]

    assert progress_per_s(beats) == pytest.approx(150.0)


def test_a_process_that_was_silent_has_no_rate() -> None:
    with pytest.raises(BenchmarkFailed, match="silent for a whole turn"):
        progress_per_s([{"index": 0, "time": 10.0, "progress": 100}])


def test_the_run_outlasts_its_turns() -> None:
    plan = WatchPlan(rounds=30, seconds=20.0)

    turns = 2 * 30 + 15 + 10
    assert len(plan.order) == turns
    assert plan.longest_minutes * 60 > 2 * turns * (20.0 + plan.settle_s)


def test_many_viewers_have_a_turn_in_every_second_round_and_a_browser_in_every_third() -> None:
    plan = WatchPlan(rounds=4)

    few, crowd = ["nobody looks", "one viewer, one actor live"], "100 viewers"
    assert plan.order == [*few, crowd, BROWSER, *few, *few, crowd, *few, BROWSER]


def viewers(live: int, others: int) -> list[Viewer]:
    return [Viewer(0, "r", ("actor-0",)) for _ in range(live)] + [
        Viewer(0, "r") for _ in range(others)
    ]


def test_what_a_viewer_saw_is_told_beside_what_looking_cost() -> None:
    looked = replace(turn(LOOK, 400.0, 0.04), seen=Seen(events=1.8, frames=4.5))
    rows = by_name([turn(ALONE, 400.0), looked, turn(ALONE, 400.0)])

    assert rows[f"events of a viewer: {LOOK}"].median == 1.8
    assert rows[f"live frames of a viewer: {LOOK}"].median == 4.5
    assert f"events of a viewer: {ALONE}" not in rows


def test_events_are_counted_per_viewer_and_frames_per_actor_that_is_shown() -> None:
    looking = viewers(1, 3)
    before = Seen.of(looking)
    for one in looking:
        one.events += 20
    looking[0].frames += 45

    assert Seen.of(looking).since(before, looking, 10.0) == Seen(events=2.0, frames=4.5)


def test_a_crowd_is_due_fewer_events_and_who_shows_no_actor_no_frames() -> None:
    assert due(viewers(1, 0)) == Seen(events=2.0, frames=5.0)
    assert due(viewers(0, 100)) == Seen(events=1.0, frames=0.0)
    assert due([]) == Seen(events=0.0, frames=0.0)


@pytest.mark.parametrize(
    ("seen", "said"),
    [(Seen(events=0.9, frames=5.0), "0.90 events"), (Seen(events=2.0, frames=2.4), "live frames")],
)
def test_viewers_who_saw_too_little_in_most_turns_are_told(seen: Seen, said: str) -> None:
    wanted = due(viewers(1, 0))
    turns = [Turn(look=LOOK, rates={}, seen=one, due=wanted) for one in (wanted, seen, seen)]

    (words,) = thin_looks([Turn(look=ALONE, rates={}), *turns])

    assert said in words
    assert thin_looks([turns[0], *turns[:2]]) == []
