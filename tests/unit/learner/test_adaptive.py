from __future__ import annotations

import math

import numpy as np
import pytest

from common.config import AdaptiveSettings
from learner.adaptive import (
    EPISODES_BEFORE_JUDGEMENT,
    AdaptiveSchedule,
    Window,
    forward_ratio,
    judge_returns,
)
from learner.controls import RunControls
from tests.episode_factory import make_episode

WINDOW = 1_000
SETTINGS = AdaptiveSettings(adaptive=True, adaptive_window_agent_steps=WINDOW)
PLENTY = 20


class Play:
    """A run whose windows end one after the other."""

    def __init__(self, settings: AdaptiveSettings = SETTINGS) -> None:
        self.schedule = AdaptiveSchedule(settings, frame_skip=4)
        self.controls = RunControls(distance_weight=0.1)
        self.agent_steps = 0
        self.schedule.follow(0, self.controls)

    def window(self, *, ratio: float = 0.5, mean_return: float = 10.0, spread: float = 1.0) -> None:
        """One window: episodes of 100 agent steps, returns spread around their mean."""
        for index in range(PLENTY):
            self.schedule.note(
                make_episode(
                    forward_agent_steps=round(100 * ratio),
                    episode_return=mean_return + spread * (1 if index % 2 else -1),
                )
            )
        self.agent_steps += WINDOW
        self.schedule.follow(self.agent_steps, self.controls)

    @property
    def help(self) -> tuple[float, float]:
        return self.controls.play.distance_weight, self.controls.play.exploration_scale


def test_little_forward_movement_gets_more_help() -> None:
    play = Play()

    play.window(ratio=0.29)

    assert play.help == (0.12, 1.1)
    assert play.controls.play.revision == 1


def test_much_forward_movement_gets_less_help() -> None:
    play = Play()

    play.window(ratio=0.61)

    assert play.help == (0.08, 0.9)


def test_between_the_two_nothing_changes() -> None:
    play = Play()

    for ratio in (0.3, 0.45, 0.6):
        play.window(ratio=ratio)

    assert play.help == (0.1, 1.0)
    assert play.controls.play.revision == 0


@pytest.mark.parametrize(("ratio", "ends"), [(0.1, (0.2, 2.0)), (1.0, (0.0, 0.5))])
def test_help_stays_within_its_bounds(ratio: float, ends: tuple[float, float]) -> None:
    play = Play()

    for _ in range(30):
        play.window(ratio=ratio)

    assert play.help == ends


def test_steps_add_up_without_a_trace_of_rounding() -> None:
    play = Play()

    for _ in range(5):
        play.window(ratio=0.1)
    for _ in range(5):
        play.window(ratio=1.0)

    assert play.help == (0.1, 1.0)


def test_nothing_is_decided_before_the_window_is_over() -> None:
    play = Play()
    for _ in range(PLENTY):
        play.schedule.note(make_episode(forward_agent_steps=10))

    early = play.schedule.follow(WINDOW - 1, play.controls)
    late = play.schedule.follow(WINDOW, play.controls)
    again = play.schedule.follow(WINDOW + 1, play.controls)

    assert early is None
    assert late is not None
    assert again is None
    assert play.controls.play.revision == 1


def test_a_window_with_few_episodes_goes_on() -> None:
    play = Play()
    for _ in range(EPISODES_BEFORE_JUDGEMENT - 1):
        play.schedule.note(make_episode(forward_agent_steps=10))
    too_few = play.schedule.follow(5 * WINDOW, play.controls)

    play.schedule.note(make_episode(forward_agent_steps=10))

    assert too_few is None
    assert play.schedule.follow(5 * WINDOW, play.controls) is not None


def test_falling_returns_lower_the_learning_rate() -> None:
    play = Play()
    play.window(mean_return=10.0)

    play.window(mean_return=8.0)

    assert play.controls.lr_scale == 0.9
    assert play.controls.play.revision == 0


def test_the_first_window_has_nothing_to_compare_with() -> None:
    play = Play()
    play.controls.change(lr_scale=0.5)

    play.window(mean_return=-1_000.0)

    assert play.controls.lr_scale == 0.5


@pytest.mark.parametrize("mean_return", [10.0, 12.0, 9.8])
def test_steady_or_rising_returns_let_it_come_back(mean_return: float) -> None:
    play = Play()
    play.controls.change(lr_scale=0.5)
    play.window(mean_return=10.0)

    play.window(mean_return=mean_return)

    assert play.controls.lr_scale == 0.6


def test_the_learning_rate_stays_within_its_bounds() -> None:
    play = Play()
    for index in range(30):
        play.window(mean_return=-10.0 * index)
    lowest = play.controls.lr_scale

    for index in range(30):
        play.window(mean_return=10.0 * index)

    assert lowest == SETTINGS.adaptive_lr_scale_min
    assert play.controls.lr_scale == SETTINGS.adaptive_lr_scale_max


def test_a_lower_level_that_stays_is_no_fall_for_ever() -> None:
    play = Play()
    play.window(mean_return=100.0)

    for _ in range(20):
        play.window(mean_return=50.0)

    assert play.controls.lr_scale == SETTINGS.adaptive_lr_scale_max


def test_returns_earned_with_other_help_are_not_compared() -> None:
    play = Play()
    play.window(mean_return=10.0)
    play.window(ratio=0.1, mean_return=10.0)
    assert play.controls.play.revision == 1

    play.window(mean_return=1.0)

    assert play.controls.lr_scale == 1.0


def test_the_standard_error_is_that_of_the_mean() -> None:
    rng = np.random.default_rng(0)
    returns = rng.normal(3.0, 2.0, size=50)
    window = Window()
    for one in returns:
        window.note(make_episode(episode_return=float(one)))

    assert window.mean_return == pytest.approx(returns.mean())
    assert window.standard_error == pytest.approx(returns.std(ddof=1) / math.sqrt(50))


def test_what_chance_explains_is_no_fall() -> None:
    window = Window()
    for one in (9.0, 11.0, 9.0, 11.0):
        window.note(make_episode(episode_return=one))

    assert judge_returns(window, 10.0 + 1.9 * window.standard_error) == 1
    assert judge_returns(window, 10.0 + 2.1 * window.standard_error) == -1


def test_without_forward_steps_distance_tells_the_ratio() -> None:
    window = Window()
    window.note(make_episode(agent_steps=100, forward_agent_steps=0, distance_pixels=240.0))

    ratio, is_estimated = forward_ratio(window, 6.0)

    assert ratio == pytest.approx(0.4)
    assert is_estimated


def test_an_estimate_is_at_most_one() -> None:
    window = Window()
    window.note(make_episode(agent_steps=100, forward_agent_steps=0, distance_pixels=5_000.0))

    assert forward_ratio(window, 6.0) == (1.0, True)


@pytest.mark.parametrize("distance", [0.0, -50.0])
def test_who_went_nowhere_needs_no_estimate(distance: float) -> None:
    window = Window()
    window.note(make_episode(forward_agent_steps=0, distance_pixels=distance))

    assert forward_ratio(window, 6.0) == (0.0, False)


def test_an_estimated_ratio_is_told_until_the_next_window() -> None:
    play = Play()
    play.window(ratio=0.0)
    told = play.schedule.is_estimated

    play.window(ratio=0.5)

    assert told
    assert not play.schedule.is_estimated


def test_values_outside_the_bounds_are_brought_within() -> None:
    play = Play()
    play.controls.change(distance_weight=5.0, exploration_scale=0.1, lr_scale=7.0)

    play.schedule.confine(play.controls)

    assert (*play.help, play.controls.lr_scale) == (0.2, 0.5, 1.0)


def test_a_resumed_schedule_waits_for_the_rest_of_its_window_and_knows_its_level() -> None:
    before = Play()
    before.window(mean_return=10.0)
    after = Play()
    after.schedule.restore(before.schedule.to_state())
    for index in range(PLENTY):
        after.schedule.note(make_episode(episode_return=5.0 + index % 2))

    early = after.schedule.follow(2 * WINDOW - 1, after.controls)
    after.schedule.follow(2 * WINDOW, after.controls)

    assert early is None
    assert after.controls.lr_scale == 0.9


def test_a_run_that_went_back_begins_its_window_there() -> None:
    play = Play()
    play.schedule.restore({"since": 50_000, "level": None})
    for _ in range(PLENTY):
        play.schedule.note(make_episode(forward_agent_steps=10))

    too_early = play.schedule.follow(300, play.controls)

    assert too_early is None
    assert play.schedule.follow(300 + WINDOW, play.controls) is not None


@pytest.mark.parametrize("state", [{"level": "nan"}, {"since": "soon"}, {"level": "inf"}])
def test_a_damaged_memory_is_refused(state: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"nan|soon|inf"):
        Play().schedule.restore(state)
