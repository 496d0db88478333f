"""Which of an actor's time is not spent on playing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from common.config import Settings
from common.errors import BenchmarkFailed
from common.phases import PHASES
from launch.benchmarks import actor_time
from launch.benchmarks.actor_time import OVERHEAD, TimePlan, rows_of, time_rows
from launch.benchmarks.measure import Row

SHARES = {
    "emulator": 0.5,
    "preprocessing": 0.1,
    "inference": 0.08,
    "blocks": 0.04,
    "encode": 0.01,
    "send": 0.02,
    "weights": 0.03,
    "wait": 0.2,
    "other": 0.02,
}


def sum_of(rows: Sequence[Row]) -> Row:
    (row,) = [row for row in rows if row.contender.endswith("all but playing")]
    return row


def test_every_phase_is_playing_waiting_or_overhead() -> None:
    assert sorted((*OVERHEAD, "emulator", "preprocessing", "wait")) == sorted(SHARES)
    assert SHARES.keys() - PHASES["actors"].keys() == {"other"}


def test_overhead_is_a_share_of_the_time_in_which_it_did_not_wait() -> None:
    rows = rows_of("core", {name: [share] for name, share in SHARES.items()})

    told = {row.contender: row.median for row in rows}
    assert told["core: inference"] == pytest.approx(0.1)
    assert told["core: blocks"] == pytest.approx(0.05)
    assert told["core: all but playing"] == pytest.approx(0.25)
    assert told["core: all but playing and blocks"] == pytest.approx(0.2)
    assert {row.unit for row in rows} == {"ratio"}
    assert len(rows) == len(OVERHEAD) + 3


def test_the_sum_is_that_of_every_heartbeat_by_itself() -> None:
    shares = {name: [0.0, 0.0, 0.0] for name in SHARES}
    shares |= {"inference": [0.3, 0.0, 0.0], "send": [0.0, 0.2, 0.0]}

    together = sum_of(rows_of("core", shares))

    # The sum of the medians would be 0.
    assert together.median == pytest.approx(0.2)


def test_the_goal_is_about_sums_of_each_heartbeat() -> None:
    shares = {name: [0.0, 0.0, 0.0] for name in SHARES}
    shares |= {"inference": [0.1, 0.0, 0.0], "encode": [0.0, 0.2, 0.0], "send": [0.0, 0.0, 0.3]}
    shares |= {"blocks": [0.4, 0.4, 0.4], "wait": [0.0, 0.0, 0.5]}

    told = {row.contender: row for row in rows_of("core", shares)}

    # The medians of the three are 0 each.
    goal = told["core: inference, encode and send"]
    assert (goal.low_quartile, goal.median) == pytest.approx((0.15, 0.2))
    assert goal.high_quartile == pytest.approx(0.4)


def test_an_interval_that_was_all_waiting_tells_nothing() -> None:
    shares = {name: [share, 0.0] for name, share in SHARES.items()}
    shares["wait"] = [0.2, 1.0]

    assert sum_of(rows_of("core", shares)).low_quartile == pytest.approx(0.25)


@pytest.mark.parametrize("waited", [[], [1.0, 1.0]])
def test_an_actor_that_never_played_is_an_error(waited: list[float]) -> None:
    shares = {name: [0.0] * len(waited) for name in SHARES} | {"wait": waited}

    with pytest.raises(BenchmarkFailed, match="core: the actor told of no time"):
        rows_of("core", shares)


def test_the_actors_play_on_nes_py_with_as_many_environments_as_the_row_says() -> None:
    plan = TimePlan()

    assert [plan.settings(envs).actor.num_envs for envs in plan.envs_of_actors] == [1, 2, 4]
    assert plan.settings(1).env.core == "nes_py"
    assert plan.settings(1).env.game == "mario"


def test_every_precision_is_watched_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[str] = []

    def watch(settings: Settings, _seconds: float) -> Mapping[str, Sequence[float]]:
        watched.append(settings.learner.mixed_precision)
        return {name: [share] for name, share in SHARES.items()}

    monkeypatch.setattr(actor_time, "watch_actor", watch)
    plan = TimePlan(envs_of_actors=(4,), precisions=("off", "bfloat16"))

    rows = time_rows(plan)

    assert watched == ["off", "bfloat16"]
    titles = {row.contender.partition(":")[0] for row in rows}
    assert titles == {"nes_py, 4 environments, float32", "nes_py, 4 environments, bfloat16"}
