"""Runs at a glance: `python launch/metrics_summary.py runs/A runs/B` prints what each achieved."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # The imports below take a moment, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from rich.console import Console

from common.cli import Program, abandon_stdout, command_words, parse_args, refuse
from common.errors import ConfigError, ExitCode, MarioError
from common.jsonl import line_problem, read_jsonl
from launch.live_view import number, percent
from launch.run_curves import axis_values
from launch.tables import make_table

PROGRAM = Program(
    name="python launch/metrics_summary.py",
    description="""Print a table over runs: steps, rates, returns, clears, bottleneck, evaluation.

Examples:
  python launch/metrics_summary.py runs/first
  python launch/metrics_summary.py runs/* --csv summary.csv

Lines that were torn by a kill are passed over; files that are missing are named.""",
)
METRICS, EVALUATIONS = "metrics.jsonl", "eval.jsonl"
TITLES = (
    *("run", "minutes", "steps", "steps/s", "updates", "updates/s", "return"),
    *("clears (now)", "best x", "waits for", "eval (best)"),
)
PLAIN_WIDTH = 160
OLDER = ".1"
"""What a file is called after it grew too large; it comes first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryArgs:
    """Which runs."""

    runs: tuple[str, ...] = field(default=())
    """Folders of runs; the first words of the command line."""
    csv: str = ""
    """File that gets the same figures, unrounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """One run. None where it wrote nothing of the kind."""

    run: str
    minutes: float
    agent_steps: int | None
    agent_steps_per_s: float | None
    """Mean over the whole run, as all rates."""
    updates: int | None
    updates_per_s: float | None
    return_mean: float | None
    """Of the last 100 episodes of training."""
    clears: int | None
    clear_rate: float | None
    """Of the last 100 episodes of training."""
    best_x: int | None
    bottleneck: str
    """What the others waited for most often."""
    eval_agent_steps: int | None
    eval_clear_rate: float | None
    """Of the last evaluation, the mean over its stages."""
    eval_best_clear_rate: float | None


@dataclass(frozen=True, slots=True)
class RunFiles:
    """What a run wrote, and what is wrong with it."""

    metrics: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]
    problems: list[str]


def main(argv: Sequence[str] | None = None) -> int:
    try:
        args = parse_args(PROGRAM, command_words(argv, "--runs"), SummaryArgs())
        if not args.runs:
            raise ConfigError("which runs? give at least one folder, for example runs/default")
        files = {folder: read_run(Path(folder)) for folder in args.runs}
        rows = [summarise(folder, one) for folder, one in files.items() if one.metrics]
        if args.csv:
            write_csv(Path(args.csv), rows)
        show(rows, [problem for one in files.values() for problem in one.problems])
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        abandon_stdout()
    return int(ExitCode.DONE if rows else ExitCode.CONFIGURATION)


def read_run(folder: Path) -> RunFiles:
    problems: list[str] = []
    metrics = _read_lines(folder / METRICS, problems)
    evaluations = _read_lines(folder / EVALUATIONS, problems)
    usable = [line for line in metrics if _number(line, "run_time_s") is not None]
    scores = [line for line in evaluations if _number(line, "clear_rate") is not None]
    if metrics and not usable:
        problems.append(f"{folder / METRICS}: no line of it has a run_time_s")
    return RunFiles(usable, scores, problems)


def _read_lines(path: Path, problems: list[str]) -> list[dict[str, Any]]:
    """All records, those of the older file first; what is missing or torn is noted."""
    lines: list[dict[str, Any]] = []
    for part in (path.with_name(path.name + OLDER), path):
        try:
            lines += read_jsonl(part)
            with part.open("rb") as file:
                torn = sum(bool(line_problem(line)) for line in file)
        except FileNotFoundError:
            if part == path:
                problems.append(f"{path} is missing")
            continue
        except OSError as error:
            problems.append(f"{part} cannot be read: {error.strerror}")
            continue
        if torn:
            problems.append(f"{part}: {torn} lines that are not whole were passed over")
    return lines


def summarise(folder: str, files: RunFiles) -> RunSummary:
    metrics, evaluations = files.metrics, files.evaluations
    steps = [step for line in evaluations if (step := _number(line, "global_step")) is not None]
    last_step = max(steps, default=None)
    last_rates = [
        line["clear_rate"] for line in evaluations if line.get("global_step") == last_step
    ]
    return RunSummary(
        run=Path(folder).resolve().name,
        minutes=axis_values(metrics, "minutes")[-1],
        agent_steps=_last(metrics, "global_step"),
        agent_steps_per_s=_mean(_numbers(metrics, "env_steps_per_sec")),
        updates=_last(metrics, "updates"),
        updates_per_s=_mean(_numbers(metrics, "updates_per_sec")),
        return_mean=_last(metrics, "avg_return"),
        clears=_last(metrics, "clears_total"),
        clear_rate=_last(metrics, "recent_clear_rate"),
        best_x=_last(metrics, "env_max_x_pos"),
        bottleneck=_commonest(metrics, "bottleneck"),
        eval_agent_steps=last_step,
        eval_clear_rate=_mean(last_rates),
        eval_best_clear_rate=max((line["clear_rate"] for line in evaluations), default=None),
    )


def _number(line: dict[str, Any], name: str) -> Any:
    value = line.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _numbers(lines: Sequence[dict[str, Any]], name: str) -> list[float]:
    return [value for line in lines if (value := _number(line, name)) is not None]


def _last(lines: Sequence[dict[str, Any]], name: str) -> Any:
    """The newest value: a line may hold none, when there was nothing to tell."""
    return next((value for line in reversed(lines) for value in _numbers([line], name)), None)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _commonest(lines: Sequence[dict[str, Any]], name: str) -> str:
    counts = Counter(str(line[name]) for line in lines if line.get(name))
    return counts.most_common(1)[0][0] if counts else ""


def write_csv(path: Path, rows: Sequence[RunSummary]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=[one.name for one in fields(RunSummary)])
            writer.writeheader()
            writer.writerows(map(asdict, rows))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def show(rows: Sequence[RunSummary], problems: Sequence[str]) -> None:
    console = Console()
    if not console.is_terminal:
        # Nobody's screen is too narrow for it.
        console = Console(width=PLAIN_WIDTH)
    if rows:
        table = make_table(TITLES, map(_cells, rows), texts=("run", "waits for"), folds=("run",))
        console.print(table)
    for problem in problems:
        console.print(problem, markup=False, highlight=False, soft_wrap=True)


def _cells(row: RunSummary) -> list[str]:
    return [
        row.run,
        number(row.minutes, 1),
        number(row.agent_steps),
        number(row.agent_steps_per_s, 1),
        number(row.updates),
        number(row.updates_per_s, 1),
        number(row.return_mean, 2),
        f"{number(row.clears)} ({percent(row.clear_rate)})",
        number(row.best_x),
        row.bottleneck or "-",
        f"{percent(row.eval_clear_rate)} ({percent(row.eval_best_clear_rate)})",
    ]


if __name__ == "__main__":
    sys.exit(main())
