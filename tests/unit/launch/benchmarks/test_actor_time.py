"""Which of an actor's time is not spent on playing."""

from __future__ import annotations

import pytest

from common.errors import BenchmarkFailed
from common.phases import PHASES
from launch.benchmarks.actor_time import OVERHEAD, TimePlan, rows_of

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


def test_every_phase_is_playing_waiting_or_overhead() -> None:
    assert sorted((*OVERHEAD, "emulator", "preprocessing", "wait")) == sorted(SHARES)
    assert SHARES.keys() - PHASES["actors"].keys() == {"other"}


def test_overhead_is_a_share_of_the_time_in_which_it_did_not_wait() -> None:
    rows = rows_of("core", {name: [share] for name, share in SHARES.items()})

    told = {row.contender: row.median for row in rows}
    assert told["core: inference"] == pytest.approx(0.1)
    assert told["core: blocks"] == pytest.approx(0.05)
    assert told["core: all but playing"] == pytest.approx(0.25)
    assert {row.unit for row in rows} == {"ratio"}
    assert len(rows) == len(OVERHEAD) + 1


def test_the_sum_is_that_of_every_heartbeat_by_itself() -> None:
    shares = {name: [0.0, 0.0, 0.0] for name in SHARES}
    shares |= {"inference": [0.3, 0.0, 0.0], "send": [0.0, 0.2, 0.0]}

    together = rows_of("core", shares)[-1]

    # The sum of the medians would be 0.
    assert together.median == pytest.approx(0.2)


def test_an_interval_that_was_all_waiting_tells_nothing() -> None:
    shares = {name: [share, 0.0] for name, share in SHARES.items()}
    shares["wait"] = [0.2, 1.0]

    assert rows_of("core", shares)[-1].low_quartile == pytest.approx(0.25)


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
