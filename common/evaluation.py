"""What an evaluation plays, and how its episodes are counted; pure.

An evaluation is a number of episodes per stage, each with a seed of its own that does not depend
on who plays it. Greedy play without sticking is determined by the frames waited at the start.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from common.errors import ConfigError
from common.game import parse_stage
from common.seeds import seed_for

NORMAL_QUANTILE_95: Final = 1.959964
MAX_EPISODES: Final = 100_000
Merit = tuple[float, float]
"""Mean clear rate over the stages, then mean distance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationPlan:
    stages: tuple[str, ...]
    episodes: int
    """Per stage."""
    noop_max: int = 30
    sticky: float = 0.0
    epsilon: float = 0.0
    """Probability of a random action; 0 is greedy play."""
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("an evaluation needs at least one stage")
        for stage in self.stages:
            parse_stage(stage)
        if not 1 <= self.episodes <= MAX_EPISODES:
            raise ConfigError(f"episodes must be from 1 to {MAX_EPISODES:,}, got {self.episodes}")
        if not 0 <= self.noop_max <= 10_000:  # noqa: PLR2004 - as many as a trace may hold
            raise ConfigError(f"noop_max must be from 0 to 10,000, got {self.noop_max}")
        if self.seed < 0:
            raise ConfigError(f"seed must be at least 0, got {self.seed}")
        for name in ("sticky", "epsilon"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ConfigError(f"{name} must be from 0 to 1, got {getattr(self, name)}")

    @property
    def is_determined(self) -> bool:
        """Whether the same start always leads to the same play."""
        return self.epsilon == 0.0 and self.sticky == 0.0

    def tasks(self) -> list[EpisodeTask]:
        return [
            self._task(stage, episode) for stage in self.stages for episode in range(self.episodes)
        ]

    def plays(self) -> list[EpisodeTask]:
        """The tasks that must be played; where the play is determined, one for every start."""
        if not self.is_determined:
            return self.tasks()
        return list({task.start: task for task in reversed(self.tasks())}.values())[::-1]

    def expand(self, played: Sequence[EpisodeResult]) -> list[EpisodeResult]:
        """The results of all tasks from those of `plays`, in the order of the tasks."""
        if not self.is_determined:
            order = {(task.stage, task.episode): place for place, task in enumerate(self.tasks())}
            return sorted(played, key=lambda result: order[result.stage, result.episode])
        tasks_by_episode = {(task.stage, task.episode): task for task in self.tasks()}
        by_start = {tasks_by_episode[one.stage, one.episode].start: one for one in played}
        return [
            replace(by_start[task.start], episode=task.episode, seed=task.seed)
            for task in self.tasks()
        ]

    def _task(self, stage: str, episode: int) -> EpisodeTask:
        seed = seed_for(self.seed, f"evaluation {stage}", episode)
        noop_frames = random.Random(seed).randint(0, self.noop_max)  # noqa: S311 - repeatable
        return EpisodeTask(stage=stage, episode=episode, seed=seed, noop_frames=noop_frames)


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeTask:
    """An episode before it is played."""

    stage: str
    episode: int
    seed: int
    noop_frames: int
    """Frames to wait before the first action."""

    @property
    def start(self) -> tuple[str, int]:
        return self.stage, self.noop_frames


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeResult:
    stage: str
    episode: int
    seed: int
    noop_frames: int
    cleared: bool
    truncated: bool
    agent_steps: int
    episode_return: float
    max_x: int
    distance: int
    """Pixels of new ground, through pipes and mazes."""
    seconds: float
    """Of the game."""

    @property
    def task(self) -> EpisodeTask:
        """How to play it once more."""
        return EpisodeTask(
            stage=self.stage, episode=self.episode, seed=self.seed, noop_frames=self.noop_frames
        )

    @property
    def worth(self) -> tuple[bool, float]:
        """Of two clears the faster one is better, of two failures the one that came farther."""
        return self.cleared, -self.seconds if self.cleared else float(self.distance)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageScore:
    """The episodes of one stage in a few figures."""

    stage: str
    episodes: int
    distinct_starts: int
    """Different numbers of frames waited; greedy episodes beyond them are repetitions."""
    clears: int
    clear_rate: float
    clear_rate_low: float
    clear_rate_high: float
    """95 % Wilson interval of the clear rate."""
    x_p10: float
    x_p50: float
    x_p90: float
    x_max: int
    distance_mean: float
    return_mean: float
    agent_steps_mean: float
    clear_seconds_mean: float | None
    """Of the game, over the clears."""


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """95 % confidence interval of a share (Wilson 1927); all of [0, 1] without trials."""
    if trials == 0:
        return 0.0, 1.0
    z2 = NORMAL_QUANTILE_95**2
    share = successes / trials
    centre = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) * NORMAL_QUANTILE_95
    half /= 1 + z2 / trials
    # Exactly 0 and 1 where rounding would miss them by the last digit.
    low = 0.0 if successes == 0 else centre - half
    return low, 1.0 if successes == trials else centre + half


def score_stage(stage: str, results: Sequence[EpisodeResult]) -> StageScore:
    if not results:
        raise ValueError(f"no episode of {stage} was played")
    clears = [result for result in results if result.cleared]
    low, high = wilson_interval(len(clears), len(results))
    xs = sorted(result.max_x for result in results)
    return StageScore(
        stage=stage,
        episodes=len(results),
        distinct_starts=len({result.noop_frames for result in results}),
        clears=len(clears),
        clear_rate=len(clears) / len(results),
        clear_rate_low=low,
        clear_rate_high=high,
        x_p10=_quantile(xs, 0.1),
        x_p50=_quantile(xs, 0.5),
        x_p90=_quantile(xs, 0.9),
        x_max=xs[-1],
        distance_mean=statistics.fmean(result.distance for result in results),
        return_mean=statistics.fmean(result.episode_return for result in results),
        agent_steps_mean=statistics.fmean(result.agent_steps for result in results),
        clear_seconds_mean=(
            statistics.fmean(result.seconds for result in clears) if clears else None
        ),
    )


def score_all(results: Sequence[EpisodeResult]) -> list[StageScore]:
    """One score per stage, in the order in which the stages first appear."""
    by_stage: dict[str, list[EpisodeResult]] = {}
    for result in results:
        by_stage.setdefault(result.stage, []).append(result)
    return [score_stage(stage, played) for stage, played in by_stage.items()]


def merit(scores: Sequence[Mapping[str, object]]) -> Merit:
    """What the best checkpoint is chosen by."""
    rates = [float(str(score["clear_rate"])) for score in scores]
    distances = [float(str(score["distance_mean"])) for score in scores]
    return statistics.fmean(rates), statistics.fmean(distances)


def _quantile(ordered: Sequence[int], level: float) -> float:
    """Between the two nearest values."""
    place = level * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
