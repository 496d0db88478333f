"""Runs side by side: `python launch/compare.py runs/A runs/B` says which learned faster."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # The imports below take a moment, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from common.atomic_files import write_atomic
from common.cli import Program, abandon_stdout, command_words, parse_args, refuse
from common.errors import ConfigError, ExitCode, MarioError
from launch.run_curves import RunLines, axis_values, axis_values_of_steps, lines_at, read_runs
from launch.tables import make_table

PROGRAM = Program(
    name="python launch/compare.py",
    description="""Compare how fast and how well runs learned, by their greedy evaluations.

Examples:
  python launch/compare.py runs/seed1 runs/seed2
  python launch/compare.py runs/seed1 runs/seed2 --keep docs/data

With --keep the curves alone are copied, small enough to publish; this command and launch/plot.py
read the copies like runs.""",
)
HALF, RELIABLE = 0.5, 0.95
LAST = 3
"""Evaluations that tell whether it stays there."""
KEPT_INTERVAL_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareArgs:
    """What to compare."""

    runs: tuple[str, ...] = field(default=())
    """Folders of runs; the first words of the command line."""
    keep: str = ""
    """Folder that gets a small copy of each run's curves."""
    json: bool = False
    """Print one JSON object per line instead of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When something was first seen."""

    minutes: float
    agent_steps: int
    updates: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One stage of one run."""

    run: str
    stage: str
    minutes: float
    agent_steps: int
    first_clear: Moment | None
    """In training, of any stage."""
    half: Moment | None
    """The first evaluation that cleared at least half."""
    reliable: Moment | None
    """The first that cleared at least 95 %."""
    best_rate: float
    last_rate: float
    """Mean of the last three."""


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--runs")
    try:
        args = parse_args(PROGRAM, words, CompareArgs())
        runs = read_runs(args.runs)
        rows = [row for name, run in runs.items() for row in summaries(name, run)]
        for folder in args.runs if args.keep else ():
            keep_curves(Path(folder), Path(args.keep))
    except MarioError as error:
        return refuse(PROGRAM, error)
    except OSError as error:
        return refuse(PROGRAM, ConfigError(f"cannot write {error.filename}: {error.strerror}"))
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    try:
        show(rows, is_json=args.json)
    except BrokenPipeError:
        abandon_stdout()
    return 0


def summaries(name: str, run: RunLines) -> list[Summary]:
    """One per stage that was evaluated."""
    return [_summary(name, run, stage) for stage in run.stages()]


def _summary(name: str, run: RunLines, stage: str) -> Summary:
    lines = run.evaluations_of(stage)
    rates = [float(line["clear_rate"]) for line in lines]
    return Summary(
        run=name,
        stage=stage,
        minutes=axis_values(run.metrics, "minutes")[-1],
        agent_steps=int(run.metrics[-1]["global_step"]),
        # The metrics count the clears of all stages together.
        first_clear=_first_training_clear(run) if len(run.stages()) == 1 else None,
        half=_first_above(run, lines, HALF),
        reliable=_first_above(run, lines, RELIABLE),
        best_rate=max(rates),
        last_rate=sum(rates[-LAST:]) / len(rates[-LAST:]),
    )


def _first_training_clear(run: RunLines) -> Moment | None:
    for line in run.metrics:
        if line.get("clears_total"):
            return _moment(run, int(line["global_step"]), int(line.get("updates") or 0))
    return None


def _first_above(run: RunLines, lines: Sequence[dict[str, Any]], rate: float) -> Moment | None:
    for line in lines:
        if line["clear_rate"] >= rate:
            return _moment(run, int(line["global_step"]), int(line.get("weight_version", 0)))
    return None


def _moment(run: RunLines, agent_steps: int, updates: int) -> Moment:
    (minutes,) = axis_values_of_steps(run, [float(agent_steps)], "minutes")
    return Moment(minutes=minutes, agent_steps=agent_steps, updates=updates)


def keep_curves(run: Path, folder: Path) -> None:
    """The evaluations whole, and of the metrics what this command and a picture need."""
    target = folder / run.name
    if target.resolve() == run.resolve():
        raise ConfigError(f"--keep {folder} would overwrite {run}; name another folder")
    target.mkdir(parents=True, exist_ok=True)
    (curves,) = read_runs([str(run)]).values()
    kept = kept_lines(curves)
    write_atomic(target / "metrics.jsonl", "".join(f"{json.dumps(x)}\n" for x in kept).encode())
    evaluations = run / "eval.jsonl"
    if evaluations.exists():
        write_atomic(target / "eval.jsonl", evaluations.read_bytes())


def kept_lines(curves: RunLines) -> list[dict[str, Any]]:
    """Every half minute, the end, the first clear, the evaluations: so it gives the same table."""
    metrics = curves.metrics
    marks = set(lines_at(curves, axis_values(curves.evaluations, "steps")))
    marks.add(len(metrics) - 1)
    marks.add(next((i for i, line in enumerate(metrics) if line.get("clears_total")), 0))
    kept, last_s = [], -KEPT_INTERVAL_S
    for index, line in enumerate(metrics):
        # A resumed run counts its time anew.
        is_due = not last_s <= line["run_time_s"] < last_s + KEPT_INTERVAL_S
        last_s = line["run_time_s"] if is_due else last_s
        if is_due or index in marks:
            kept.append(line)
    return kept


def show(rows: Sequence[Summary], *, is_json: bool) -> None:
    if is_json:
        for row in rows:
            print(json.dumps(asdict(row)))
        return
    titles = ("run", "stage", "whole run", "first clear", "50 %", "95 %", "best", f"last {LAST}")
    table = make_table(titles, map(_cells, rows), texts=("run", "stage"), folds=("run",))
    console = Console()
    console.print(table)
    console.print(
        "Minutes and agent steps: of the whole run, until the first clear in training, until the "
        f"first evaluation with 50 % and with 95 % clears; best and mean of the last {LAST}.",
        highlight=False,
    )


def _cells(row: Summary) -> list[str]:
    return [
        row.run,
        row.stage,
        _cell(row.minutes, row.agent_steps),
        *(_moment_cell(moment) for moment in (row.first_clear, row.half, row.reliable)),
        f"{row.best_rate:.0%}",
        f"{row.last_rate:.0%}",
    ]


def _cell(minutes: float, agent_steps: int) -> str:
    return f"{minutes:.1f}m {agent_steps / 1000:.0f}k"


def _moment_cell(moment: Moment | None) -> str:
    return "-" if moment is None else _cell(moment.minutes, moment.agent_steps)


if __name__ == "__main__":
    sys.exit(main())
