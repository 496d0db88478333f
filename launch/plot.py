"""Curves of one or more runs as a picture: `python launch/plot.py runs/A runs/B -o curves.png`."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.cli import Program, command_words, parse_args, refuse
from common.errors import ConfigError, MarioError
from common.jsonl import read_jsonl

PROGRAM = Program(
    name="python launch/plot.py",
    description="""Draw the curves of one or more runs (needs the extra `plot`).

Examples:
  python launch/plot.py runs/first -o curves.png
  python launch/plot.py runs/seed1 runs/seed2 --x minutes
""",
)
PANELS = (
    ("env_mean_x_pos", "training: mean farthest x of the last 100 episodes (pixels)"),
    ("avg_return", "training: mean return of the last 100 episodes"),
    ("env_steps_per_sec", "agent steps per second"),
    ("updates_per_sec", "updates per second"),
)
EVALUATION_PANELS = (
    ("clear_rate", "evaluation: share of greedy episodes that clear, 95 % interval"),
    ("x_p50", "evaluation: median farthest x, 10 to 90 % (pixels)"),
)
BANDS = {"clear_rate": ("clear_rate_low", "clear_rate_high"), "x_p50": ("x_p10", "x_p90")}
SECONDS_PER_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotArgs:
    """What to draw and where."""

    runs: tuple[str, ...] = field(default=())
    """Folders of runs; the first words of the command line."""
    output: str = "curves.png"
    """Picture to write; .png or .svg. -o for short."""
    x: str = "steps"
    """steps or minutes."""


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--runs")
    try:
        args = parse_args(PROGRAM, words, PlotArgs())
        if args.x not in ("steps", "minutes"):
            raise ConfigError(f"--x must be steps or minutes, got {args.x!r}")
        draw(read_runs(args.runs), args)
    except MarioError as error:
        return refuse(PROGRAM, error)
    print(f"wrote {args.output}")
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLines:
    """What is drawn of a run."""

    metrics: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]

    def stages(self) -> list[str]:
        return sorted({str(line.get("stage")) for line in self.evaluations})


def read_runs(folders: Sequence[str]) -> dict[str, RunLines]:
    if not folders:
        raise ConfigError("which runs? give at least one folder, for example runs/default")
    runs = {}
    for folder in folders:
        lines = list(read_jsonl(Path(folder) / "metrics.jsonl"))
        if not lines:
            raise ConfigError(f"{folder} holds no metrics.jsonl with lines in it")
        evaluations = [line for line in read_jsonl(Path(folder) / "eval.jsonl") if _is_score(line)]
        runs[Path(folder).name] = RunLines(metrics=lines, evaluations=evaluations)
    return runs


def _is_score(line: dict[str, Any]) -> bool:
    names = ("global_step", "clear_rate", "clear_rate_low", "clear_rate_high", "x_p50")
    return all(isinstance(line.get(name), int | float) for name in names)


def axis_values(lines: Sequence[dict[str, Any]], axis: str) -> list[float]:
    """Agent steps, or minutes of training, over all starts of the run without the pauses."""
    if axis == "steps":
        return [float(line["global_step"]) for line in lines]
    minutes, total_s, last_s = [], 0.0, 0.0
    for line in lines:
        elapsed = float(line["run_time_s"])
        total_s += elapsed - last_s if elapsed >= last_s else elapsed
        last_s = elapsed
        minutes.append(total_s / SECONDS_PER_MINUTE)
    return minutes


def axis_values_of_steps(run: RunLines, steps: Sequence[float], axis: str) -> list[float]:
    """The same axis for lines that know only their agent steps."""
    if axis == "steps":
        return list(steps)
    known, minutes = axis_values(run.metrics, "steps"), axis_values(run.metrics, "minutes")
    places = [min(bisect_left(known, step), len(known) - 1) for step in steps]
    return [minutes[place] for place in places]


def draw(runs: dict[str, RunLines], args: PlotArgs) -> None:
    try:
        import matplotlib  # noqa: PLC0415 - an extra that only this command needs
    except ImportError:
        raise ConfigError("drawing needs matplotlib; run: pip install '.[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415 - see above

    figure, axes = pyplot.subplots(3, 2, figsize=(12, 10), constrained_layout=True)
    panels = [*EVALUATION_PANELS, *PANELS]
    for (name, title), axis in zip(panels, axes.flat, strict=True):
        for label, run in runs.items():
            if name in BANDS:
                _draw_evaluations(axis, label, run, name, args.x)
            else:
                known = [line for line in run.metrics if line.get(name) is not None]
                axis.plot(axis_values(known, args.x), [line[name] for line in known], label=label)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("agent steps" if args.x == "steps" else "minutes")
        axis.set_ylim(bottom=0, top=1.02 if name == "clear_rate" else None)
        axis.grid(alpha=0.3)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
    try:
        figure.savefig(args.output, dpi=110)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot write {args.output}: {error}") from error
    pyplot.close(figure)


def _draw_evaluations(axis: Any, label: str, run: RunLines, name: str, x: str) -> None:
    stages = run.stages()
    for stage in stages:
        lines = [line for line in run.evaluations if str(line.get("stage")) == stage]
        places = axis_values_of_steps(run, [float(line["global_step"]) for line in lines], x)
        full_label = label if len(stages) == 1 else f"{label}, {stage}"
        (curve,) = axis.plot(places, [line[name] for line in lines], marker=".", label=full_label)
        low, high = ([line.get(bound) for line in lines] for bound in BANDS[name])
        axis.fill_between(places, low, high, alpha=0.15, color=curve.get_color())


if __name__ == "__main__":
    sys.exit(main())
