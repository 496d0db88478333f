from __future__ import annotations

import json
import math

import pytest
import torch

from common.metrics import METRIC_NAMES
from learner.report import (
    GpuWindow,
    IntervalSums,
    RateMeter,
    find_bottleneck,
    mean_or_none,
    metrics_line,
    phase_metrics,
    wait_metrics,
    weight_lag,
)
from learner.update import UpdateResult
from tests.scripted_peers import FakeClock


@pytest.mark.parametrize(
    ("learner", "actors", "replay", "expected"),
    [
        (0.1, 0.5, 0.9, "learner"),
        (0.5, 0.1, 0.9, "actors"),
        (0.5, 0.6, 0.2, "replay"),
        (0.5, None, 0.2, None),
        (0.5, 0.1, None, None),
    ],
)
def test_the_bottleneck_is_the_part_that_waits_least(
    learner: float, actors: float | None, replay: float | None, expected: str | None
) -> None:
    assert find_bottleneck(learner, actors, replay) == expected


def test_waits_of_actors_are_averaged() -> None:
    actors = [{"share_wait": 0.2}, {"share_wait": 0.6}]

    metrics = wait_metrics(0.5, actors, [{"share_wait": 0.9}])

    assert metrics["wait_share_actors"] == pytest.approx(0.4)
    assert metrics["bottleneck"] == "actors"


def test_of_several_replay_servers_the_busiest_counts() -> None:
    metrics = wait_metrics(0.5, [{"share_wait": 0.4}], [{"share_wait": 0.9}, {"share_wait": 0.1}])

    assert metrics["wait_share_replay"] == 0.1
    assert metrics["bottleneck"] == "replay"


def test_without_actors_nothing_is_said_about_them() -> None:
    metrics = wait_metrics(0.5, [], [])

    assert metrics["wait_share_actors"] is None
    assert metrics["wait_share_replay"] is None
    assert metrics["bottleneck"] is None


def test_a_line_has_every_metric_and_null_where_nothing_is_known() -> None:
    line = metrics_line({"updates": 3})

    assert line.keys() == METRIC_NAMES
    assert line["updates"] == 3
    assert line["loss_total"] is None


def test_a_line_refuses_names_that_are_not_registered() -> None:
    with pytest.raises(ValueError, match="update_count"):
        metrics_line({"update_count": 3})


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_numbers_that_json_does_not_know_become_null(odd: float) -> None:
    line = metrics_line({"loss_total": odd, "q_mean": -1e30, "model_compiled": True})

    assert line["loss_total"] is None
    assert line["q_mean"] == -1e30
    assert line["model_compiled"] is True
    json.dumps(line, allow_nan=False)


def test_rates_are_growth_per_second_and_zero_at_first() -> None:
    clock = FakeClock()
    meter = RateMeter(clock)
    clock.advance(1.0)

    first = meter.rates({"steps": 1_000_000})
    clock.advance(2.0)
    second = meter.rates({"steps": 1_000_500})

    assert first == {"steps": 0.0}
    assert second == {"steps": 250.0}


def test_gpu_utilisation_is_averaged_over_the_last_minute() -> None:
    clock = FakeClock()
    window = GpuWindow(clock)
    window.metrics({"util_percent": 90, "mem_used_mb": 100})
    clock.advance(50)
    early = window.metrics({"util_percent": 10, "mem_used_mb": 200})
    clock.advance(20)
    late = window.metrics({"util_percent": 30, "mem_used_mb": 300})

    assert early["gpu_util_mean_window"] == 50
    assert late["gpu_util_mean_window"] == 20
    assert late["gpu_util_last"] == 30
    assert late["gpu_mem_used_mb"] == 300


def test_without_a_gpu_its_metrics_are_null() -> None:
    assert set(GpuWindow(FakeClock()).metrics(None).values()) == {None}


def test_weight_lag_is_the_mean_over_actors_that_have_weights() -> None:
    assert weight_lag(100, [{"weight_version": 90}, {"weight_version": 80}, {}]) == 15
    assert weight_lag(100, [{"weight_version": None}]) is None


def test_updates_that_were_skipped_do_not_enter_the_means() -> None:
    sums = IntervalSums()
    for loss, finite in ((1.0, True), (math.nan, False), (3.0, True)):
        sums.add(
            UpdateResult(
                loss=loss, priorities=torch.zeros(1), q_mean=loss, grad_norm=loss, finite=finite
            )
        )

    assert mean_or_none(sums.losses) == 2.0
    assert mean_or_none([]) is None


def test_the_time_of_a_part_is_the_mean_of_its_processes() -> None:
    told = [{"share_wait": 0.5, "share_send": 0.1}, {"share_wait": 0.5, "share_send": 0.3}]

    metrics = phase_metrics("actors", [*told, {"state": "building environments"}])

    assert metrics["send_share_actors"] == pytest.approx(0.2)
    assert metrics["emulator_share_actors"] == 0.0
    assert metrics.keys() <= METRIC_NAMES


def test_a_part_that_is_not_heard_has_no_times() -> None:
    assert set(phase_metrics("replay", []).values()) == {None}
