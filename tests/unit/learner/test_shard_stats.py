from __future__ import annotations

import pytest

from common.messages import Scalar
from common.metrics import METRIC_NAMES
from learner.shard_stats import GREATEST, LEAST, SUMS, WEIGHTED_BY, merged_stats
from tests.service_factory import filled_service, make_service

ONE: dict[str, Scalar] = {
    "replay_size": 300,
    "replay_capacity": 1_000,
    "replay_fill_rate": 0.3,
    "replay_priority_mass": 30.5,
    "replay_priority_mean": 0.1,
    "replay_push_total": 400,
    "replay_sample_total": 900,
    "replay_avg_unique_ratio": 1.0,
    "replay_sum_drift": 0.0,
    "samples_per_insert": 4.0,
    "samples_per_insert_target": 4.0,
}
OTHER: dict[str, Scalar] = {
    **ONE,
    "replay_size": 100,
    "replay_fill_rate": 0.1,
    "replay_priority_mean": 0.5,
    "replay_push_total": 100,
    "replay_sample_total": 100,
    "replay_avg_unique_ratio": 0.5,
    "replay_sum_drift": 0.25,
    "samples_per_insert": None,
}


def test_sizes_add_up_and_means_are_weighted() -> None:
    merged = merged_stats([ONE, OTHER])

    assert merged == {
        "replay_size": 400,
        "replay_capacity": 2_000,
        "replay_fill_rate": 0.2,
        "replay_priority_mass": 61,
        "replay_priority_mean": pytest.approx(0.2),
        "replay_push_total": 500,
        "replay_sample_total": 1_000,
        "replay_avg_unique_ratio": pytest.approx(0.95),
        "replay_sum_drift": 0.25,
        "samples_per_insert": 4.0,
        "samples_per_insert_target": 4.0,
    }


def test_one_server_is_told_as_it_is() -> None:
    assert merged_stats([ONE]) == ONE
    assert merged_stats([]) == {}


def test_real_statistics_keep_their_names_also_before_anything_is_stored() -> None:
    filled, empty = filled_service()[0].metrics(), make_service().metrics()

    for servers in ([filled, empty], [empty, empty]):
        merged = merged_stats(servers)
        assert merged.keys() == filled.keys() | empty.keys() if filled in servers else empty.keys()
        assert merged["replay_capacity"] == 2 * 512


def test_the_names_that_are_treated_apart_exist() -> None:
    assert SUMS | GREATEST | LEAST | WEIGHTED_BY.keys() <= METRIC_NAMES
