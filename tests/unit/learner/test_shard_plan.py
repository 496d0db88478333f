from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from learner.shard_plan import apportion, joint_factors, joint_priority

WEIGHTS = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e18)), min_size=1, max_size=8)


@given(st.integers(1, 65_536), WEIGHTS.filter(any), st.floats(0, 1, exclude_max=True))
def test_shares_are_whole_sum_up_and_are_less_than_one_off(
    total: int, weights: list[float], offset: float
) -> None:
    shares = apportion(total, weights, offset)

    assert sum(shares) == total
    for share, weight in zip(shares, weights, strict=True):
        assert share >= 0
        assert abs(share - total * weight / sum(weights)) < 1 + 1e-6
        assert weight > 0 or share == 0


def test_shares_are_right_on_average() -> None:
    weights = [0.05, 1.0, 0.4, 2.0]
    offsets = np.linspace(0, 1, 10_000, endpoint=False)

    means = np.mean([apportion(16, weights, float(offset)) for offset in offsets], axis=0)

    np.testing.assert_allclose(means, 16 * np.array(weights) / sum(weights), atol=1e-3)


@given(
    st.lists(st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5), min_size=2, max_size=4),
    st.floats(0, 1),
)
def test_parts_together_have_the_weights_of_one_batch(
    parts: list[list[float]], beta: float
) -> None:
    whole = np.array([priority for part in parts for priority in part])
    alone = [(min(part) / np.array(part)) ** beta for part in parts]

    factors = joint_factors([min(part) for part in parts], beta)

    together = np.concatenate([w * f for w, f in zip(alone, factors, strict=True)])
    np.testing.assert_allclose(together, (whole.min() / whole) ** beta, rtol=1e-9)


def test_a_mass_that_has_changed_since_the_plan_changes_the_weights_as_it_changed_the_draws() -> (
    None
):
    # Planned with mass 6 of 8, so three quarters of the draws; drawn from a mass of 12.
    chance_of_two = 6 / 8 * 2 / 12
    chance_of_one = 2 / 8 * 1 / 2

    ratio = joint_priority(2, 6, 12) / joint_priority(1, 2, 2)

    assert ratio == pytest.approx(chance_of_two / chance_of_one)


def test_one_part_keeps_its_weights_bit_for_bit() -> None:
    weights = torch.rand(8)

    (factor,) = joint_factors([0.3], 0.7)

    assert torch.equal(weights * factor, weights)
