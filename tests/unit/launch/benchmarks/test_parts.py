"""The benchmarks that build parts of the system by hand: they must fit what they are built from."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import cast

from common.phases import PhaseTimer
from launch.benchmarks.actor import _actor, _playing
from launch.benchmarks.weights import Source
from tests.process_system import free_endpoints
from tests.run_factory import corridor_settings


def test_the_benchmarks_actor_plays() -> None:
    timer = PhaseTimer()

    actor = _actor("nes_py", 1, timer)
    played = [actor.tick() for _ in range(3)]
    for lane in actor._lanes:
        lane.close()

    assert played == [True, True, True]


def test_a_turn_of_the_benchmarks_actor_is_the_agent_steps_that_its_row_counts() -> None:
    contender = _playing("nes_py", 3)
    actor, _ticks = cast("partial[None]", contender.work).args

    contender.work()
    for lane in actor._lanes:
        lane.close()

    assert actor._agent_steps == contender.units_per_turn
    assert contender.is_rate


def test_the_benchmarks_learner_publishes(tmp_path: Path) -> None:
    source = Source(corridor_settings(tmp_path, {"endpoints": free_endpoints()}))
    try:
        published = source.publish_versions(2, 0.0)
    finally:
        source.close()

    assert list(published) == [1, 2]
    assert source.serialisations == 2
