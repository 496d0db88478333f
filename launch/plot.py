"""Curves of one or more runs as a picture: `python launch/plot.py runs/A runs/B -o curves.png`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common.cli import Program, parse_args, refuse
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
    ("env_mean_x_pos", "mean farthest x of the last 100 episodes (pixels)"),
    ("avg_return", "mean return of the last 100 episodes"),
    ("env_steps_per_sec", "agent steps per second"),
    ("updates_per_sec", "updates per second"),
)
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
    words = _normalise(sys.argv[1:] if argv is None else argv)
    try:
        args = parse_args(PROGRAM, words, PlotArgs())
        if args.x not in ("steps", "minutes"):
            raise ConfigError(f"--x must be steps or minutes, got {args.x!r}")
        draw(read_runs(args.runs), args)
    except MarioError as error:
        return refuse(PROGRAM, error)
    print(f"wrote {args.output}")
    return 0


def _normalise(argv: Sequence[str]) -> list[str]:
    """The leading words are runs; -o is --output."""
    words = ["--output" if word == "-o" else word for word in argv]
    if words and not words[0].startswith("-"):
        words.insert(0, "--runs")
    return words


def read_runs(folders: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    if not folders:
        raise ConfigError("which runs? give at least one folder, for example runs/default")
    runs = {}
    for folder in folders:
        lines = list(read_jsonl(Path(folder) / "metrics.jsonl"))
        if not lines:
            raise ConfigError(f"{folder} holds no metrics.jsonl with lines in it")
        runs[Path(folder).name] = lines
    return runs


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


def draw(runs: dict[str, list[dict[str, Any]]], args: PlotArgs) -> None:
    try:
        import matplotlib  # noqa: PLC0415 - an extra that only this command needs
    except ImportError:
        raise ConfigError("drawing needs matplotlib; run: pip install '.[plot]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415 - see above

    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7), constrained_layout=True)
    for (name, title), axis in zip(PANELS, axes.flat, strict=True):
        for run, lines in runs.items():
            known = [line for line in lines if line.get(name) is not None]
            axis.plot(axis_values(known, args.x), [line[name] for line in known], label=run)
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("agent steps" if args.x == "steps" else "minutes")
        axis.grid(alpha=0.3)
    axes.flat[0].legend(fontsize=8)
    try:
        figure.savefig(args.output, dpi=110)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot write {args.output}: {error}") from error
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main())
