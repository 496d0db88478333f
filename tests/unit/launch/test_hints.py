from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from pathlib import Path

import pytest

from common.config import ActorSettings, EnvSettings, LearnerSettings, RunSettings, Settings
from launch.advisor import NAMES, Advisor
from launch.evidence import Values
from launch.hints import PLATEAU_AGENT_STEPS, WINDOW_S, find_hints

SETTINGS = Settings(run=RunSettings(device="cpu"), actor=ActorSettings(actors=2))
INTERVAL_S = 5.0
RECORDED = Path(__file__).resolve().parents[3] / "docs" / "data"


def healthy(index: int) -> dict[str, object]:
    """The line at this place of a run that learns well; learning begins with the third."""
    learned = max(index - 2, 0)
    return {
        "run_time_s": INTERVAL_S * (index + 1),
        "global_step": 1_500 * (index + 1),
        "updates": 90 * learned,
        "episodes_total": 10 * index,
        "avg_return": 30.0 + index,
        "recent_clear_rate": 0.0,
        "env_mean_x_pos": 500.0 + index,
        "replay_push_total": 1_500 * (index + 1),
        "actors_alive": 2,
        "skipped_updates_total": 0,
        "learning_rate": 2.5e-4,
        "gpu_util_mean_window": None,
        "wait_share_learner": 0.1 if learned else 1.0,
        "wait_share_actors": 0.7,
        "wait_share_replay": 0.9,
    }


def run_of(count: int, **changes: object) -> list[Values]:
    """Lines of a healthy run but for these values."""
    return [{**healthy(index), **changes} for index in range(count)]


def hints(lines: list[Values], settings: Settings = SETTINGS) -> dict[str, str]:
    return {hint.kind: hint.text for hint in find_hints(lines, settings)}


def test_a_run_that_learns_gets_no_hint() -> None:
    assert hints(run_of(60)) == {}


def test_nothing_is_said_before_anything_is_known() -> None:
    assert hints([]) == {}
    assert hints([dict.fromkeys(NAMES)]) == {}


@pytest.mark.parametrize("run", sorted(path.name for path in RECORDED.iterdir()))
def test_recorded_runs_that_went_well_would_have_got_none(run: str) -> None:
    advisor, said = Advisor(SETTINGS), []
    for text in (RECORDED / run / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        said += advisor.look(line, line["time"])

    assert said == []


def test_episodes_that_stay_at_the_start_are_told_how_to_leave_it() -> None:
    said = hints(run_of(12, env_mean_x_pos=41.0))

    assert said.keys() == {"distance"}
    assert "x 41 on average" in said["distance"]


def test_distance_is_not_judged_before_learning_and_not_in_other_games() -> None:
    still = run_of(12, env_mean_x_pos=41.0)
    corridor = replace(SETTINGS, env=EnvSettings(game="corridor"))

    assert hints(run_of(12, env_mean_x_pos=41.0, updates=7)) == {}
    assert hints(still[:4]) == {}
    assert hints(still, corridor) == {}


def test_episodes_that_never_end_are_no_return() -> None:
    lines = run_of(12, episodes_total=0, avg_return=None, env_mean_x_pos=None)

    assert hints(lines[:9]) == {}
    assert "no episode has ended in 12,000 agent steps" in hints(lines)["return"]


def plateau(clear_rate: float) -> list[Values]:
    rising = [{**healthy(index), "recent_clear_rate": clear_rate} for index in range(20)]
    step = 1_500 * 20
    flat = [
        {**healthy(20 + index), "avg_return": 45.0 - index % 3, "recent_clear_rate": clear_rate}
        for index in range(PLATEAU_AGENT_STEPS // 1_500 + 10)
    ]
    assert flat[0]["global_step"] == step + 1_500
    return [*rising, *flat]


def test_returns_that_do_not_rise_for_long_are_told() -> None:
    lines = plateau(clear_rate=0.1)

    assert hints(lines[:100]) == {}
    assert "best 49.0" in hints(lines)["return"]


def test_who_clears_often_may_stand_still() -> None:
    assert hints(plateau(clear_rate=0.9)) == {}


def test_a_replay_that_gets_nothing_more_is_told() -> None:
    lines = run_of(12, replay_push_total=9_000, actors_alive=1)

    said = hints(lines)

    assert said.keys() == {"replay"}
    assert "1 of 2 actors" in said["replay"]


def test_actors_that_are_held_by_the_balance_do_not_fail_to_fill_it() -> None:
    lines = run_of(12, replay_push_total=9_000, wait_share_actors=0.99)

    assert hints(lines).keys() == {"waiting"}


def test_building_environments_may_take_its_time() -> None:
    empty = run_of(60, replay_push_total=None, updates=0, episodes_total=0, env_mean_x_pos=None)

    assert hints(empty[:30]) == {}
    assert "nothing was stored in 300 s" in hints(empty)["replay"]


@pytest.mark.parametrize(
    ("waits", "remedy"), [(0.5, "more --actors"), (0.05, "a larger --batch-size")]
)
def test_an_idle_gpu_is_told_with_what_would_use_it(waits: float, remedy: str) -> None:
    lines = run_of(12, gpu_util_mean_window=8.0, wait_share_learner=waits)
    on_cuda = replace(SETTINGS, run=RunSettings(device="cuda"))

    said = hints(lines, on_cuda)

    assert said.keys() == {"gpu"}
    assert remedy in said["gpu"]
    assert hints(lines) == {}


def test_updates_that_are_not_finite_are_told() -> None:
    lines = run_of(12)
    lines[-1] = {**lines[-1], "skipped_updates_total": 3}

    said = hints(lines)

    assert said.keys() == {"loss"}
    assert said["loss"].startswith("3 updates of the last 30 s")
    assert "0.00025" in said["loss"]


def test_the_loss_scale_of_float16_may_skip_a_few() -> None:
    lines = run_of(12)
    lines[-1] = {**lines[-1], "skipped_updates_total": 3}
    half = replace(SETTINGS, learner=LearnerSettings(mixed_precision="float16"))

    assert hints(lines, half) == {}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"wait_share_learner": 0.8, "wait_share_actors": 0.0}, "the learner waits 80 %"),
        ({"wait_share_learner": 0.0, "wait_share_actors": 0.95}, "actors wait 95 %"),
        ({"wait_share_replay": 0.01}, "the replay server, which is busy 99 %"),
    ],
)
def test_who_waits_for_whom_is_told(changes: dict[str, object], expected: str) -> None:
    said = hints(run_of(12, **changes))

    assert said.keys() == {"waiting"}
    assert expected in said["waiting"]


def test_a_busy_replay_server_is_no_problem_while_nobody_waits() -> None:
    """As in lockstep, where all take turns."""
    busy = run_of(12, wait_share_learner=0.0, wait_share_actors=0.0, wait_share_replay=0.0)

    assert hints(busy) == {}


def test_waiting_before_learning_starts_is_as_it_should_be() -> None:
    before = run_of(12, updates=0, wait_share_learner=1.0, wait_share_actors=0.0)
    just_begun = run_of(5, wait_share_learner=1.0, wait_share_actors=0.0)

    assert hints(before) == {}
    assert hints(just_begun) == {}


def test_a_hint_names_only_flags_that_exist() -> None:
    known = {
        "--" + field.name.replace("_", "-")
        for section in fields(Settings)
        for field in fields(getattr(SETTINGS, section.name))
    }
    source = (RECORDED.parents[1] / "launch" / "hints.py").read_text(encoding="utf-8")

    assert set(re.findall(r"--[a-z][a-z0-9-]+", source)) <= known


def test_the_window_is_longer_than_an_interval() -> None:
    assert RunSettings().metrics_interval_s * 3 <= WINDOW_S
