"""Curves of one or more runs as a picture: `python launch/plot.py runs/A runs/B -o curves.png`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from common.cli import Program, command_words, parse_args, refuse
from common.errors import ConfigError, MarioError
from launch.run_curves import RunLines, axis_values, axis_values_of_steps, read_runs

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
                places = axis_values(run.metrics, args.x)
                values = [line.get(name) for line in run.metrics]
                known = [one for one in zip(places, values, strict=True) if one[1] is not None]
                axis.plot(*zip(*known, strict=True), label=label) if known else None
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
        lines = run.evaluations_of(stage)
        places = axis_values_of_steps(run, [float(line["global_step"]) for line in lines], x)
        full_label = label if len(stages) == 1 else f"{label}, {stage}"
        (curve,) = axis.plot(places, [line[name] for line in lines], marker=".", label=full_label)
        low, high = ([line.get(bound) for line in lines] for bound in BANDS[name])
        axis.fill_between(places, low, high, alpha=0.15, color=curve.get_color())


if __name__ == "__main__":
    sys.exit(main())
