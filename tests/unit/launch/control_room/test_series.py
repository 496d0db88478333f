from __future__ import annotations

import math
import time

import numpy as np

from launch.control_room.metric_table import MetricTable
from launch.control_room.panels import PANELS
from launch.control_room.series import (
    as_numbers,
    newest_lineage,
    pick_extremes,
    smooth,
    training_minutes,
)
from tests.run_folders import metrics_record


def slow_mean(values: list[float], weight: float) -> list[float]:
    """The same by its definition."""
    result = []
    for place, value in enumerate(values):
        known = [j for j in range(place + 1) if not math.isnan(values[j])]
        if math.isnan(value):
            result.append(math.nan)
            continue
        factors = {j: weight ** (place - j) for j in known}
        result.append(sum(factors[j] * values[j] for j in known) / sum(factors.values()))
    return result


def test_every_peak_survives_downsampling() -> None:
    x = np.arange(100_000.0)
    y = np.sin(x / 900.0)
    y[[31_415, 77_777]] = [50.0, -50.0]

    chosen = pick_extremes(x, {"y": y}, 300)

    assert len(chosen) <= 2 * 300 + 2
    assert {0, 31_415, 77_777, 99_999} <= set(chosen.tolist())
    assert (np.diff(chosen) > 0).all()


def test_peaks_of_every_column_survive_together() -> None:
    x = np.arange(10_000.0)
    columns = {"a": np.zeros(10_000), "b": np.zeros(10_000)}
    columns["a"][5_005], columns["b"][5_006] = 9.0, -9.0

    chosen = pick_extremes(x, columns, 100).tolist()

    assert {5_005, 5_006} <= set(chosen)


def test_short_curves_are_left_as_they_are() -> None:
    x = np.asarray([0.0, 1.0, 5.0])

    assert pick_extremes(x, {"y": np.asarray([1.0, np.nan, 2.0])}, 10).tolist() == [0, 1, 2]


def test_gaps_and_standing_still_are_no_fault() -> None:
    x, nothing = np.zeros(1_000), np.full(1_000, np.nan)

    assert pick_extremes(x, {"y": nothing}, 10).tolist() == [0, 999]
    assert len(pick_extremes(np.arange(1_000.0), {"y": nothing}, 10)) == 2


def test_smoothing_is_the_mean_by_its_definition() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=300)
    values[rng.random(300) < 0.3] = np.nan

    for weight in (0.5, 0.9, 0.99):
        np.testing.assert_allclose(smooth(values, weight), slow_mean(values.tolist(), weight))


def test_no_smoothing_changes_nothing() -> None:
    values = np.asarray([1.0, np.nan, 3.0])

    assert smooth(values, 0.0) is values


def test_what_a_run_took_back_is_not_drawn() -> None:
    steps = np.asarray([100.0, 200.0, 300.0, 150.0, 250.0])

    assert newest_lineage(steps).tolist() == [True, False, False, True, True]


def test_pauses_between_starts_are_no_training() -> None:
    run_time_s = np.asarray([60.0, 120.0, 30.0, 60.0])

    assert training_minutes(run_time_s).tolist() == [1.0, 2.0, 2.5, 3.0]


def test_json_gets_no_nan() -> None:
    assert as_numbers(np.asarray([1.5, np.nan, np.inf, 1 / 3])) == [1.5, None, None, 0.333333]


def test_the_table_stays_bounded_and_keeps_its_ends() -> None:
    table = MetricTable(max_rows=100)

    for step in range(1_000):
        table.append(metrics_record(step))

    steps = table.taken().values["global_step"]
    assert table.rows == len(steps) <= 100
    assert table.seen == 1_000
    assert steps[-1] == 999
    assert steps[0] < 64
    assert (np.diff(steps) > 0).all()


def test_the_table_takes_no_name_that_is_not_registered_and_no_line_without_axes() -> None:
    table = MetricTable()

    table.append(metrics_record(1, invented=3.0))
    table.append({"loss_total": 1.0})
    table.append({"time": True, "global_step": "x"})

    assert table.rows == 1
    assert "invented" not in table._columns


def test_odd_values_become_gaps() -> None:
    table = MetricTable()

    table.append(metrics_record(1, loss_total=10**400, q_mean="high", grad_norm=1e39))

    for name in ("loss_total", "q_mean", "grad_norm"):
        assert np.isnan(table.taken([name]).values[name][0])


def test_a_clock_that_was_set_back_lets_no_curve_run_backwards() -> None:
    table = MetricTable()
    for step, seconds in ((1, 100.0), (2, 50.0), (3, 120.0)):
        table.append(metrics_record(step, time=seconds))

    assert table.taken().axis("time").tolist() == [100.0, 100.0, 120.0]


def test_a_hundred_thousand_points_are_drawn_in_a_moment() -> None:
    rng = np.random.default_rng(1)
    x, columns = np.arange(100_000.0), {f"c{n}": rng.normal(size=100_000) for n in range(4)}

    began_s = time.process_time()
    pick_extremes(x, {name: smooth(y, 0.9) for name, y in columns.items()}, 500)

    assert time.process_time() - began_s < 1.0


def test_panels_name_registered_metrics_and_have_a_label_for_each() -> None:
    columns = set(MetricTable()._columns)

    for panel in PANELS:
        assert len(panel.labels) == len(panel.names)
        if panel.source == "metrics":
            assert set(panel.names) <= columns
