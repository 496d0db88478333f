"""Curves of one or more runs as a picture: `python launch/plot.py runs/A runs/B -o curves.png`."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # The imports below take a moment, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.cli import Program, command_words, parse_args, refuse
from common.errors import ConfigError, ExitCode, MarioError
from common.extras import install_command
from launch.plot_style import COLOURS, SUFFIXES, THEMES, ThemeName
from launch.run_curves import RunLines, read_runs
from launch.seed_bands import EVALUATION_BANDS, Curve, evaluation_curve, metric_curve, over_seeds

PROGRAM = Program(
    name="python launch/plot.py",
    description="""Draw the curves of one or more runs (needs the extra `plot`).

Runs that differ only in their seed are drawn together with --group: their median, the band from 10
to 90 % of them, and each of them as a thin line. Examples:
  python launch/plot.py runs/first -o curves.png
  python launch/plot.py runs/seed1 runs/seed2 --x minutes -o curves.svg
  python launch/plot.py --group new=runs/n1,runs/n2,runs/n3 old=runs/o1,runs/o2 --theme dark
""",
)
PANELS = (
    ("clear_rate", "evaluation: share of greedy episodes that clear"),
    ("x_p50", "evaluation: median farthest x (pixels)"),
    ("env_mean_x_pos", "training: mean farthest x of the last 100 episodes (pixels)"),
    ("avg_return", "training: mean return of the last 100 episodes"),
    ("env_steps_per_sec", "agent steps per second"),
    ("updates_per_sec", "updates per second"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotArgs:
    """What to draw and where."""

    runs: tuple[str, ...] = field(default=())
    """Folders of runs; the first words of the command line."""
    group: tuple[str, ...] = field(default=())
    """Runs that belong together, as NAME=RUN,RUN,...; several such words for several groups."""
    output: str = "curves.png"
    """Picture to write; .png or .svg. -o for short."""
    x: str = "steps"
    """steps or minutes."""
    theme: ThemeName = "both"
    """both: a clear background and colours that can be read on white and on black; light; dark."""

    def __post_init__(self) -> None:
        if self.x not in ("steps", "minutes"):
            raise ConfigError(f"--x must be steps or minutes, got {self.x!r}")
        if not self.output.endswith(SUFFIXES):
            raise ConfigError(f"--output must end in {' or '.join(SUFFIXES)}, got {self.output!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What is drawn in one colour: a run, or several seeds of one thing."""

    label: str
    runs: list[RunLines]

    def stages(self) -> list[str]:
        return sorted({stage for run in self.runs for stage in run.stages()})


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--runs")
    try:
        args = parse_args(PROGRAM, words, PlotArgs())
        draw(read_series(args), args)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    print(f"wrote {args.output}")
    return 0


def read_series(args: PlotArgs) -> list[Series]:
    groups = [_read_group(word) for word in args.group]
    if groups and not args.runs:
        return groups
    singles = [Series(label=label, runs=[run]) for label, run in read_runs(args.runs).items()]
    return [*singles, *groups]


def _read_group(word: str) -> Series:
    label, _, folders = word.partition("=")
    runs = [folder for folder in folders.split(",") if folder]
    if not label or not runs:
        raise ConfigError(f"--group must be NAME=RUN,RUN,..., got {word!r}")
    found = list(read_runs(runs).values())
    return Series(label=label if len(found) == 1 else f"{label}, {len(found)} seeds", runs=found)


def draw(series: Sequence[Series], args: PlotArgs) -> None:
    try:
        import matplotlib  # noqa: PLC0415 - an extra that only this command needs
    except ImportError:
        raise ConfigError(f"drawing needs matplotlib; run: {install_command('plot')}") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415 - see above

    with matplotlib.rc_context(THEMES[args.theme].settings()):
        figure, axes = pyplot.subplots(3, 2, figsize=(12, 10), constrained_layout=True)
        for (name, title), axis in zip(PANELS, axes.flat, strict=True):
            _draw_panel(axis, name, series, args.x)
            axis.set_title(title, fontsize=10)
        try:
            figure.savefig(args.output, dpi=110)
        except OSError as error:
            raise ConfigError(f"cannot write {args.output}: {error.strerror}") from error
        finally:
            pyplot.close(figure)


def _draw_panel(axis: Any, name: str, series: Sequence[Series], x: str) -> None:
    number = 0
    for one in series:
        for label, curves in _curves(one, name, x):
            _draw_series(axis, label, curves, COLOURS[number % len(COLOURS)])
            number += 1
    axis.set_xlabel("agent steps" if x == "steps" else "minutes")
    axis.set_ylim(bottom=0, top=1.02 if name == "clear_rate" else None)
    axis.grid(alpha=0.25)
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8)


def _curves(series: Series, name: str, x: str) -> Iterator[tuple[str, list[Curve]]]:
    """A label, and a curve for every run of the series; of evaluations one for every stage."""
    if name not in EVALUATION_BANDS:
        yield series.label, [metric_curve(run, name, x) for run in series.runs]
        return
    stages = series.stages()
    for stage in stages:
        label = series.label if len(stages) == 1 else f"{series.label}, {stage}"
        yield label, [evaluation_curve(run, stage, name, x) for run in series.runs]


def _draw_series(axis: Any, label: str, curves: Sequence[Curve], colour: str) -> None:
    """One run with its own band; of several seeds the median, their band, and each of them."""
    main = over_seeds(curves) if len(curves) > 1 else curves[0]
    if len(curves) > 1:
        for curve in curves:
            axis.plot(curve.places, curve.values, color=colour, linewidth=0.6, alpha=0.5)
    if main is None or not main.places:
        return
    # Evaluations are few: of a young run there may be only one.
    marker = "." if len(curves) == 1 and main.low is not None else ""
    axis.plot(main.places, main.values, color=colour, label=label, linewidth=1.6, marker=marker)
    if main.low is not None:
        axis.fill_between(main.places, main.low, main.high, color=colour, alpha=0.2, linewidth=0)


if __name__ == "__main__":
    sys.exit(main())
