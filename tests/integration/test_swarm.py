"""The benchmark `swarm` with a few actors: its figures are there, and nothing is lost."""

from __future__ import annotations

import pytest

from common.errors import BenchmarkFailed
from launch.benchmarks import swarm_site
from launch.benchmarks.blocks import BLOCK_ITEMS
from launch.benchmarks.swarm import SwarmPlan, measure_swarm
from launch.benchmarks.swarm_site import open_site
from launch.benchmarks.swarm_values import Crew, Pace

pytestmark = [pytest.mark.integration, pytest.mark.slow]
ACTORS = 12


def crew(*, has_keys: bool = False) -> Crew:
    return Crew(actors=ACTORS, has_keys=has_keys, capacity=2_048, frame_side=16)


@pytest.mark.timeout(240)
def test_no_block_is_lost_beyond_the_limit_or_in_a_restart() -> None:
    with open_site(crew()) as site:
        site.join()
        flood = site.play(Pace(agent_steps_per_s=0.0, seconds=0.5, warm_s=0.1))
        beyond = site.account()

        storm = site.storm(agent_steps_per_s=500.0)
        played = site.play(Pace(agent_steps_per_s=200.0, seconds=0.5, warm_s=0.1))
        after = site.account()

    assert flood.agent_steps_per_s > played.agent_steps_per_s > 0
    assert (beyond.wrong, after.wrong) == (0, 0)
    assert after.sent_again >= ACTORS
    assert 0 < storm.first_welcome_s < 60
    assert 0 <= storm.all_welcome_s < 30


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_a_restart_that_does_not_find_every_actor_waiting_is_no_figure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(swarm_site, "HOLD_DEADLINE_S", 1.0 - 2 * BLOCK_ITEMS)
    with open_site(crew()) as site:
        site.join()
        with pytest.raises(BenchmarkFailed, match="had a block when the server was to come back"):
            site.storm(agent_steps_per_s=1.0)


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_a_swarm_is_measured_at_its_rate_at_its_limit_and_through_a_restart() -> None:
    plan = SwarmPlan(
        crews=[crew(), crew(has_keys=True)], rate=200.0, window_s=1.0, search_s=0.5, warm_s=0.1
    )

    rows = {row.contender: row for row in measure_swarm(plan).rows}

    for name in ("12 actors", "12 actors, keys"):
        assert rows[f"{name}, 200 steps/s each: steps in"].median == pytest.approx(2_400, rel=0.5)
        assert rows[f"{name}, 200 steps/s each: server's processor time"].median > 0
        assert rows[f"{name}, no pause: steps in"].median > 2_400
        assert rows[f"{name}, no pause: generator"].unit == "core"
        assert rows[f"{name}, no pause: blocks lost or stored twice"].median == 0
        assert rows[f"{name}, after the restart: blocks lost or stored twice"].median == 0
        assert rows[f"{name}: first to last welcome"].median >= 0
