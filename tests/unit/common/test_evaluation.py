from __future__ import annotations

import math
from dataclasses import asdict, replace

import pytest

from common.errors import ConfigError
from common.evaluation import (
    EpisodeResult,
    EpisodeTask,
    EvaluationPlan,
    merit,
    score_all,
    score_stage,
    wilson_interval,
)

PLAN = EvaluationPlan(stages=("1-1", "1-2"), episodes=40)


def result_of(task: EpisodeTask, *, cleared: bool = False, max_x: int = 100) -> EpisodeResult:
    return EpisodeResult(
        stage=task.stage,
        episode=task.episode,
        seed=task.seed,
        noop_frames=task.noop_frames,
        cleared=cleared,
        truncated=False,
        agent_steps=10,
        episode_return=1.5,
        max_x=max_x,
        distance=max_x - 40,
        seconds=2.0,
    )


def test_the_starts_depend_on_the_seed_alone() -> None:
    more = replace(PLAN, episodes=60)

    assert PLAN.tasks() == replace(PLAN).tasks()
    assert [task for task in more.tasks() if task.episode < 40] == PLAN.tasks()
    assert PLAN.tasks() != replace(PLAN, seed=2).tasks()


def test_waiting_covers_its_range_and_no_more() -> None:
    waits = [task.noop_frames for task in replace(PLAN, episodes=500).tasks()]

    assert (min(waits), max(waits)) == (0, 30)
    assert {task.noop_frames for task in replace(PLAN, noop_max=0).tasks()} == {0}


def test_greedy_play_is_played_once_per_start_and_counted_for_every_episode() -> None:
    plays = PLAN.plays()

    results = PLAN.expand([result_of(task, max_x=task.noop_frames) for task in plays])

    assert len(plays) == len({task.start for task in PLAN.tasks()}) < len(PLAN.tasks())
    assert [(one.stage, one.episode, one.seed) for one in results] == [
        (task.stage, task.episode, task.seed) for task in PLAN.tasks()
    ]
    assert [one.max_x for one in results] == [task.noop_frames for task in PLAN.tasks()]


@pytest.mark.parametrize("plan", [replace(PLAN, epsilon=0.1), replace(PLAN, sticky=0.25)])
def test_random_play_is_played_for_every_episode(plan: EvaluationPlan) -> None:
    results = plan.expand([result_of(task) for task in reversed(plan.plays())])

    assert plan.plays() == plan.tasks()
    assert [(one.stage, one.episode) for one in results] == [
        (task.stage, task.episode) for task in plan.tasks()
    ]


def slow_wilson(successes: int, trials: int) -> tuple[float, float]:
    """The shares p whose distance to the observed one is 1.96 standard errors of p itself."""
    observed = successes / trials

    def is_inside(p: float) -> bool:
        return abs(observed - p) <= 1.959964 * math.sqrt(p * (1 - p) / trials)

    inside = [i / 100_000 for i in range(100_001) if is_inside(i / 100_000)]
    return min([*inside, observed]), max([*inside, observed])


@pytest.mark.parametrize(("successes", "trials"), [(0, 10), (3, 10), (40, 40), (95, 100), (1, 1)])
def test_the_interval_is_wilsons(successes: int, trials: int) -> None:
    low, high = wilson_interval(successes, trials)

    assert (low, high) == pytest.approx(slow_wilson(successes, trials), abs=2e-5)


def test_nothing_is_known_without_trials() -> None:
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_a_stage_in_figures() -> None:
    tasks = replace(PLAN, stages=("1-1",), episodes=5).tasks()
    results = [
        result_of(task, cleared=x >= 400, max_x=x)
        for task, x in zip(tasks, (500, 100, 300, 200, 400), strict=True)
    ]

    score = score_stage("1-1", results)

    assert (score.episodes, score.clears, score.clear_rate) == (5, 2, 0.4)
    assert (score.x_p10, score.x_p50, score.x_p90, score.x_max) == (140, 300, 460, 500)
    assert score.distance_mean == 260
    assert score.clear_seconds_mean == 2.0


def test_no_clear_takes_no_time() -> None:
    task = PLAN.tasks()[0]

    assert score_stage("1-1", [result_of(task)]).clear_seconds_mean is None


def test_each_stage_is_scored_by_itself_and_the_merit_is_their_mean() -> None:
    results = [result_of(task, cleared=task.stage == "1-2", max_x=140) for task in PLAN.tasks()]

    scores = score_all(results)

    assert [(score.stage, score.clear_rate) for score in scores] == [("1-1", 0.0), ("1-2", 1.0)]
    assert merit([asdict(score) for score in scores]) == (0.5, 100.0)


@pytest.mark.parametrize(
    "wrong",
    [
        {"stages": ()},
        {"stages": ("9-9",)},
        {"episodes": 0},
        {"episodes": 10**6},
        {"noop_max": -1},
        {"sticky": 1.5},
        {"epsilon": -0.1},
    ],
)
def test_what_cannot_be_played_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        replace(PLAN, **wrong)  # type: ignore[arg-type] # wrong on purpose
