"""The benchmark `overlap`: play and learn in turns (`--lockstep`) or at once, over a matrix.

The order changes from place to place as the colours of a chessboard do, so that a machine that
becomes slower favours no mode, in no row and no column.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from launch.benchmarks.measure import Effort, Result, Row, against_first, figure, in_turn
from launch.benchmarks.runs import RunFigures, number, require_figures, watch_run

ONE_THREAD = "parallel with one learner thread"
MODES = {
    "lockstep": ("--lockstep",),
    # Lockstep has one thread, too: what this gains comes of playing and drawing batches beside it.
    ONE_THREAD: ("--learner-threads", "1"),
    "parallel": (),
}
COLUMNS = (
    "mode",
    "num_envs",
    "rollout",
    "steps_per_sec_mean",
    "updates_per_sec_mean",
    "replay_fill_final",
    "gpu_util_mean_window",
    "duration_sec",
)
Line = Mapping[str, object]
SLACK_AGENT_STEPS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapPlan:
    actors: Sequence[int] = (1, 2, 4, 8, 16)
    """Processes of one environment each."""
    block_steps: Sequence[int] = (32, 128)
    rounds: int = 1
    seconds: float = 15.0
    """That each run is watched, from its first update on."""
    words: tuple[str, ...] = ()
    """Further flags of all runs."""


def run(effort: Effort) -> Result:
    core = effort.core_name()
    return run_matrix(
        OverlapPlan(
            actors=(2,) if effort.quick else (1, 2, 4, 8, 16),
            block_steps=(64,) if effort.quick else (32, 128),
            rounds=effort.turns(1, 1),
            seconds=effort.seconds(15.0, 2.0),
            words=("--core", core),
        )
    )


def run_matrix(plan: OverlapPlan) -> Result:
    """All modes in turn for every place of the matrix."""
    places = list(product(enumerate(plan.actors), enumerate(plan.block_steps)))
    lines = [
        measure_place(plan, mode, actors, block_steps)
        for number in range(plan.rounds)
        for (row, actors), (column, block_steps) in places
        for mode in in_turn(MODES, number + row + column)
    ]
    return Result(_rows(lines), lines=lines)


def measure_place(plan: OverlapPlan, mode: str, actors: int, block_steps: int) -> Line:
    words = (
        *("--actors", str(actors), "--block-steps", str(block_steps), "--evaluators", "0"),
        *("--learning-starts", str(max(300, 2 * block_steps * actors)), "--capacity", "20000"),
        # With the usual slack actors would run ahead for most of the time that is watched.
        *("--balance-slack-agent-steps", str(SLACK_AGENT_STEPS)),
        *("--metrics-interval-s", str(min(1.0, plan.seconds / 4))),
        *MODES[mode],
        *plan.words,
    )
    what = f"{mode} with {actors} actors and blocks of {block_steps}"
    figures = require_figures(watch_run(words, plan.seconds), what)
    return line_of(mode, actors, block_steps, figures)


def line_of(mode: str, num_envs: int, rollout: int, figures: RunFigures) -> Line:
    values = (
        mode,
        num_envs,
        rollout,
        round(figures.per_second("global_step"), 2),
        round(figures.per_second("updates"), 2),
        figures.last("replay_fill_rate"),
        figures.last("gpu_util_mean_window"),
        round(figures.duration_s, 2),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _rows(lines: Sequence[Line]) -> list[Row]:
    """Agent steps per second, lockstep first; a group is a place of the matrix."""
    speeds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in lines:
        place = f"{line['num_envs']} actors, blocks of {line['rollout']}"
        speeds[place, str(line["mode"])].append(number(line, "steps_per_sec_mean"))
    rows = [
        figure(f"{mode}: {place}", speeds[place, mode], "agent step/s", group=place)
        for place in dict.fromkeys(place for place, _ in speeds)
        for mode in MODES
    ]
    return against_first(rows)
