from __future__ import annotations

import numpy as np
import pytest

from launch.run_curves import RunLines
from launch.seed_bands import Curve, evaluation_curve, metric_curve, over_seeds


def straight(start: float, end: float, height: float) -> Curve:
    return Curve(places=[start, end], values=[height, height])


def test_the_band_is_where_most_seeds_are() -> None:
    band = over_seeds([straight(0, 10, height) for height in range(11)])

    assert band is not None
    assert band.low is not None
    assert band.high is not None
    assert (band.low[0], band.values[0], band.high[0]) == pytest.approx((1.0, 5.0, 9.0))


def test_seeds_are_compared_only_where_all_of_them_are() -> None:
    band = over_seeds([straight(0, 10, 1.0), straight(2, 8, 3.0)])

    assert band is not None
    assert (band.places[0], band.places[-1]) == (2, 8)
    assert set(band.values) == {2.0}


def test_seeds_without_common_ground_have_no_band() -> None:
    assert over_seeds([straight(0, 1, 1.0), straight(2, 3, 1.0)]) is None
    assert over_seeds([straight(0, 1, 1.0), Curve(places=[], values=[])]) is None
    assert over_seeds([]) is None


def test_a_run_that_went_back_is_read_without_falling_places() -> None:
    back = Curve(places=[0.0, 10.0, 5.0, 20.0], values=[0.0, 10.0, 5.0, 20.0])

    band = over_seeds([back, straight(0, 20, 0.0)])

    assert band is not None
    assert np.isfinite(band.values).all()
    assert (band.places[0], band.places[-1]) == (0.0, 20.0)


def test_lines_without_a_figure_are_left_out() -> None:
    lines = [{"global_step": step, "avg_return": value} for step, value in ((1, None), (2, 3.5))]
    run = RunLines(metrics=[*lines, {"global_step": 3}], evaluations=[])

    curve = metric_curve(run, "avg_return", "steps")

    assert (curve.places, curve.values) == ([2.0], [3.5])


def test_an_evaluation_brings_its_own_band() -> None:
    line = {"stage": "1-1", "global_step": 50, "clear_rate": 0.5}
    with_band = line | {"clear_rate_low": 0.4, "clear_rate_high": 0.6}

    known = RunLines(metrics=[], evaluations=[with_band])
    unknown = RunLines(metrics=[], evaluations=[line, with_band])

    curve = evaluation_curve(known, "1-1", "clear_rate", "steps")
    assert (curve.low, curve.high) == ([0.4], [0.6])
    assert evaluation_curve(unknown, "1-1", "clear_rate", "steps").low is None
