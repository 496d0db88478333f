from __future__ import annotations

from collections.abc import Mapping

import pytest

from common.errors import BenchmarkFailed
from common.phases import PHASES, UPDATE_PHASES, gap_share
from launch.benchmarks.gaps import GAPS, GapPlan, rows_of
from launch.benchmarks.measure import Row

SHARES: Mapping[str, float] = {
    "wait": 0.02,
    "copy": 0.01,
    "priorities": 0.03,
    "forward": 0.4,
    "backward": 0.3,
    "optimizer": 0.1,
}
"""They leave 0.14 that no phase claims."""


def line(second: float, updates: int, **shares: float) -> dict[str, object]:
    told = {**SHARES, **shares}
    named = {f"{phase}_share_learner": share for phase, share in told.items()}
    gaps = {"gap_share_learner": gap_share(told)}
    return {"run_time_s": second, "updates": updates, **gaps, **named}


def rows(*lines: Mapping[str, object]) -> dict[str, Row]:
    return {row.contender: row for row in rows_of(lines, "float32")}


def test_all_but_the_update_is_a_gap_also_what_no_phase_claims() -> None:
    found = rows(line(10, 5), line(20, 105), line(30, 205))

    assert found["gap: wait, float32"].median == pytest.approx(0.02)
    assert found["gap: publish, float32"].median == 0.0
    assert found["gap: other, float32"].median == pytest.approx(0.14)
    assert found["gaps together, float32"].median == pytest.approx(0.02 + 0.01 + 0.03 + 0.14)
    assert "gap: forward, float32" not in found


def test_gaps_and_update_are_all_phases_of_the_learner() -> None:
    assert {*GAPS, *UPDATE_PHASES} == {*PHASES["learner"], "other"}
    assert not set(GAPS) & set(UPDATE_PHASES)


def test_the_time_before_the_first_line_does_not_count() -> None:
    """A part of it was before the first update, when the learner waited."""
    found = rows(line(10, 5, wait=0.16), line(20, 105), line(30, 205))

    assert found["gap: wait, float32"].high_quartile == pytest.approx(0.02)


def test_a_checkpoint_costs_its_share_of_the_interval_it_was_made_in() -> None:
    found = rows(
        # Made before the window: neither its time nor itself counts.
        line(10, 5, checkpoint=0.12),
        line(20, 105),
        line(25, 155, checkpoint=0.01),
        line(35, 255),
        line(45, 355, checkpoint=0.01),
    )

    checkpoint = found["a checkpoint in the training thread, float32"]
    assert (checkpoint.low_quartile, checkpoint.high_quartile) == pytest.approx((0.0625, 0.0875))
    assert checkpoint.median == pytest.approx((0.05 + 0.1) / 2)


def test_a_checkpoint_is_compared_with_an_update_of_the_same_process() -> None:
    found = rows(line(10, 5), line(20, 105), line(30, 305, checkpoint=0.012))

    update = found["an update in the learner process, float32"]
    # 0.8 of ten seconds for 100 updates, then for 200.
    assert update.median == pytest.approx((0.08 + 0.04) / 2)
    assert found["a checkpoint in the training thread, float32"].ratio == pytest.approx(2.0)


def test_without_a_checkpoint_there_is_no_figure_of_one() -> None:
    found = rows(line(10, 5), line(20, 105))

    assert not any("checkpoint in" in name for name in found)
    assert "an update in the learner process, float32" in found


def test_a_learner_that_told_nothing_of_an_interval_is_an_error() -> None:
    with pytest.raises(BenchmarkFailed, match="nothing of its time"):
        rows(line(10, 5))


@pytest.mark.parametrize("seconds", [0.5, 6.0, 60.0])
def test_two_checkpoints_never_share_an_interval(seconds: float) -> None:
    settings = GapPlan(seconds=seconds, precision="bfloat16").settings

    assert settings.learner.checkpoint_interval_s >= 2 * settings.run.metrics_interval_s
    assert settings.evaluation.eval_interval_agent_steps > 1_000 * 3_600
    assert settings.learner.mixed_precision == "bfloat16"
