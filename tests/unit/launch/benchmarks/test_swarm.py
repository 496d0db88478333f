from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from common.codec import decode
from common.config import ActorSettings, EnvSettings, Settings
from common.errors import BenchmarkFailed
from common.ids import Incarnation
from launch.benchmarks.blocks import random_block
from launch.benchmarks.swarm import keeps_up, stages_up_to
from launch.benchmarks.swarm_sender import BlockPress
from launch.benchmarks.swarm_site import require_all
from launch.benchmarks.swarm_values import Crew, Played

SMALL = Settings(env=EnvSettings(size=16), actor=ActorSettings(block_steps=8))
PLAYED = Played(
    agent_steps_per_s=1_000.0,
    latencies_s=[0.01] * 99 + [0.5],
    generator_cores=0.1,
    server_cores=0.1,
    server_peak_bytes=0,
)


def test_a_printed_block_is_one_that_the_server_reads() -> None:
    press = BlockPress(SMALL)
    message = press.message(Incarnation(7), index=3, sequence=41)

    received = decode([bytes(frame) for frame in press.frames(message)])

    block = random_block(SMALL.spec, items=8)
    assert received.message == message
    assert all(
        np.array_equal(array, getattr(block, name)) for name, array in received.arrays.items()
    )
    assert received.arrays.keys() == set(message.arrays)


@pytest.mark.parametrize(
    ("most", "stages"), [(1_000, [10, 100, 1_000]), (50, [10, 50]), (10, [10]), (3, [3])]
)
def test_the_numbers_of_actors_lead_up_to_the_largest(most: int, stages: list[int]) -> None:
    assert stages_up_to(most) == stages


def test_a_rate_is_in_time_when_nearly_all_is_acknowledged_and_soon() -> None:
    late = replace(PLAYED, latencies_s=[0.01] * 90 + [1.5] * 10)

    assert keeps_up(PLAYED, 1_000.0)
    assert not keeps_up(PLAYED, 1_100.0)
    assert not keeps_up(late, 1_000.0)


def test_the_99th_of_a_hundred_answers_counts() -> None:
    assert replace(PLAYED, latencies_s=[0.25]).late_s == 0.25
    assert replace(PLAYED, latencies_s=list(range(200))).late_s == 198


def test_what_fewer_actors_did_is_no_figure() -> None:
    crew = Crew(actors=5, has_keys=False, capacity=2_048, frame_side=16)

    require_all(crew, [{"back": 2}, {"back": 3}], "back", "came")

    with pytest.raises(BenchmarkFailed, match="5 actors: only 4 came"):
        require_all(crew, [{"back": 2}, {"back": 2}], "back", "came")
