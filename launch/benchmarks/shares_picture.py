"""The picture of the benchmark `pipeline`: where the time of every part of a run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from common.errors import ConfigError

Shares = Mapping[str, Mapping[str, Sequence[float]]]
"""Of every part of a run, and of every phase of that, in all its heartbeats."""


def draw(runs: Mapping[str, Shares], path: str) -> None:
    """For every run a panel, in it one bar for every part, divided into its phases."""
    matplotlib = import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot: Any = import_module("matplotlib.pyplot")
    size = (12, 1 + 2.2 * len(runs))
    figure_, axes = pyplot.subplots(
        len(runs), figsize=size, sharex=True, squeeze=False, constrained_layout=True
    )
    told = [phases for shares in runs.values() for phases in shares.values()]
    names = list(dict.fromkeys(phase for phases in told for phase in phases))
    palette = [*pyplot.get_cmap("tab20").colors, *pyplot.get_cmap("tab20b").colors]
    colours = {**dict(zip(names, palette, strict=False)), "wait": "0.85", "other": "0.95"}
    for axis, (title, shares) in zip(axes[:, 0], runs.items(), strict=True):
        axis.set_title(title, loc="left", fontsize=10)
        axis.set_yticks([])
        axis.set_xlim(0, 1)
        for row, (part, phases) in enumerate(shares.items()):
            axis.text(-0.01, row, part, ha="right", va="center")
            _draw_bar(axis, row, phases, colours)
    axes[-1, 0].set_xlabel("share of time, mean over processes and heartbeats")
    patches = [pyplot.Rectangle((0, 0), 1, 1, color=colours[name]) for name in names]
    figure_.legend(patches, names, loc="outside lower center", ncols=9, frameon=False)
    try:
        figure_.savefig(path, dpi=110)
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot write {path}: {error}") from error
    pyplot.close(figure_)


def _draw_bar(
    axis: Any, row: int, phases: Mapping[str, Sequence[float]], colours: Mapping[str, object]
) -> None:
    left = 0.0
    for phase, values in phases.items():
        width = sum(values) / len(values) if values else 0.0
        axis.barh(row, width, left=left, color=colours[phase])
        if width >= 0.04:  # noqa: PLR2004 - a narrower piece has no room for its name
            label = f"{phase}\n{width:.0%}"
            axis.text(left + width / 2, row, label, ha="center", va="center", fontsize=8)
        left += width
