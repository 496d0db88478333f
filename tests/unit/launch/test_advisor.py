from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from common.config import DiagnosisSettings, RunSettings, Settings
from launch import advisor as advisor_module
from launch.advisor import MAX_DOUBLINGS, Advisor

INTERVAL_S = 60.0
SETTINGS = Settings(
    run=RunSettings(device="cpu"), diagnosis=DiagnosisSettings(hint_interval_s=INTERVAL_S)
)


def line(seconds: float, *, is_waiting: bool = True) -> dict[str, object]:
    """Of a run that learns, and waits for its actors or not."""
    return {
        "run_time_s": seconds,
        "global_step": int(100 * seconds),
        "updates": int(10 * seconds),
        "replay_push_total": int(100 * seconds),
        "skipped_updates_total": 0,
        "wait_share_learner": 0.9 if is_waiting else 0.1,
        "wait_share_actors": 0.1,
        "wait_share_replay": 0.9,
    }


def said_at(advisor: Advisor, seconds: range, *, is_waiting: bool = True) -> list[int]:
    """When something was said, in seconds."""
    return [
        now for now in seconds for _ in advisor.look(line(float(now), is_waiting=is_waiting), now)
    ]


def test_the_same_hint_is_given_again_after_the_interval_and_then_more_rarely() -> None:
    times = said_at(Advisor(SETTINGS), range(0, 4_000, 5))

    pauses = [later - earlier for earlier, later in pairwise(times)]
    most = INTERVAL_S * 2**MAX_DOUBLINGS
    assert pauses[:6] == [60, 120, 240, 480, 960, 960]
    assert max(pauses) == most


def test_a_hint_that_became_untrue_begins_anew_but_not_within_the_interval() -> None:
    advisor = Advisor(SETTINGS)
    first = said_at(advisor, range(0, 200, 5))
    between = said_at(advisor, range(200, 300, 5), is_waiting=False)
    second = said_at(advisor, range(300, 500, 5))

    assert len(first) == 2
    assert between == []
    assert len(second) == 2


def test_another_life_of_the_learner_is_judged_anew() -> None:
    advisor = Advisor(replace(SETTINGS, diagnosis=DiagnosisSettings(hint_interval_s=1.0)))
    assert said_at(advisor, range(0, 60, 5))

    again = [advisor.look(line(float(second)), 60 + second) for second in range(0, 30, 5)]

    assert again == [[]] * 6


def test_a_line_that_was_seen_is_not_judged_again() -> None:
    advisor = Advisor(replace(SETTINGS, diagnosis=DiagnosisSettings(hint_interval_s=1.0)))
    said_at(advisor, range(0, 60, 5))
    newest = line(60.0)

    assert advisor.look(newest, 1_000.0)
    assert advisor.look(newest, 2_000.0) == []


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advisor_module, "MAX_LINES", 100)
    advisor = Advisor(SETTINGS)
    for second in range(150):
        advisor.look({**line(float(second)), "more": "x" * 10}, second)

    assert len(advisor._lines) == 100
    assert all("more" not in one for one in advisor._lines)


@pytest.mark.parametrize("metrics", [{}, {"global_step": None}])
def test_a_run_without_figures_is_left_alone(metrics: dict[str, object]) -> None:
    assert Advisor(SETTINGS).look(metrics, 0.0) == []


def test_hints_can_be_switched_off() -> None:
    silent = Advisor(replace(SETTINGS, diagnosis=DiagnosisSettings(hints=False)))

    assert said_at(silent, range(0, 600, 5)) == []
