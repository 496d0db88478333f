from __future__ import annotations

import pytest

from common.errors import ConfigError
from common.exploration import ExplorationSettings, epsilon_at, ladder_epsilon

AFTER_DECAY = 10_000_000


def test_ladder_runs_from_base_to_base_to_the_eighth() -> None:
    assert ladder_epsilon(0, 16) == pytest.approx(0.4)
    assert ladder_epsilon(15, 16) == pytest.approx(0.4**8)
    assert ladder_epsilon(5, 16) == pytest.approx(0.4 ** (1 + 7 / 3))


def test_lone_environment_stands_on_the_first_rung() -> None:
    assert ladder_epsilon(0, 1) == pytest.approx(0.4)


@pytest.mark.parametrize(("index", "count"), [(-1, 4), (4, 4), (0, 0)])
def test_index_outside_the_ladder_is_refused(index: int, count: int) -> None:
    with pytest.raises(ConfigError, match="environment index"):
        ladder_epsilon(index, count)


def test_everything_is_random_at_the_very_start() -> None:
    assert [epsilon_at(index, 4, 0) for index in range(4)] == [1.0] * 4


def test_warmup_floor_is_the_same_for_all_and_ends() -> None:
    assert epsilon_at(3, 4, 5_000) == pytest.approx(0.75)
    assert epsilon_at(3, 4, 19_999) == pytest.approx(0.0006314, rel=0.01)
    assert epsilon_at(3, 4, 20_000) == pytest.approx(0.4**8 * (1 - 0.9 * 0.04))


def test_ladder_is_scaled_to_a_tenth() -> None:
    assert epsilon_at(0, 4, 250_000) == pytest.approx(0.4 * 0.55)
    assert epsilon_at(0, 4, 500_000) == pytest.approx(0.04)
    assert epsilon_at(0, 4, AFTER_DECAY) == pytest.approx(0.04)


def test_epsilon_never_rises_with_progress_nor_leaves_its_range() -> None:
    for index in range(8):
        values = [epsilon_at(index, 8, steps) for steps in range(0, 600_000, 1_000)]

        assert all(0.0 < value <= 1.0 for value in values)
        assert values == sorted(values, reverse=True)


def test_zero_durations_mean_the_final_values_at_once() -> None:
    settings = ExplorationSettings(decay_agent_steps=0, warmup_agent_steps=0)

    assert epsilon_at(0, 4, 0, settings) == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("name", "value"),
    [("ladder_base", 1.1), ("final_scale", -0.1), ("ladder_base", float("nan"))],
)
def test_probabilities_outside_the_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        ExplorationSettings(**{name: value})  # type: ignore[arg-type] # only float fields are named


@pytest.mark.parametrize("name", ["ladder_span", "decay_agent_steps", "warmup_agent_steps"])
def test_negative_lengths_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        ExplorationSettings(**{name: -1})


def test_a_factor_moves_the_ladder_but_not_the_start_and_not_above_one() -> None:
    assert epsilon_at(0, 4, AFTER_DECAY, factor=2.0) == pytest.approx(0.08)
    assert epsilon_at(0, 4, AFTER_DECAY, factor=100.0) == 1.0
    assert epsilon_at(3, 4, 0, factor=0.1) == 1.0
