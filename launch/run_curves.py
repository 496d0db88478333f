"""What a run wrote down, as curves: read from its folder, for pictures and tables."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from common.errors import ConfigError
from common.jsonl import read_jsonl

SECONDS_PER_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLines:
    """What is drawn of a run."""

    metrics: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]

    def stages(self) -> list[str]:
        return sorted({str(line.get("stage")) for line in self.evaluations})

    def evaluations_of(self, stage: str) -> list[dict[str, Any]]:
        return [line for line in self.evaluations if str(line.get("stage")) == stage]


def read_runs(folders: Sequence[str]) -> dict[str, RunLines]:
    if not folders:
        raise ConfigError("which runs? give at least one folder, for example runs/default")
    runs = {}
    for folder in folders:
        lines = [line for line in read_jsonl(Path(folder) / "metrics.jsonl") if _has_place(line)]
        if not lines:
            raise ConfigError(
                f"{folder} holds no metrics.jsonl with lines that tell global_step and run_time_s"
            )
        evaluations = [line for line in read_jsonl(Path(folder) / "eval.jsonl") if _is_score(line)]
        name = Path(folder).resolve().name
        runs[folder if name in runs else name] = RunLines(metrics=lines, evaluations=evaluations)
    return runs


def _has_place(line: dict[str, Any]) -> bool:
    """A line may be damaged or old; without its place nobody can draw it."""
    return _are_numbers(line, "global_step", "run_time_s")


def _is_score(line: dict[str, Any]) -> bool:
    names = ("global_step", "clear_rate", "clear_rate_low", "clear_rate_high", "x_p50")
    return _are_numbers(line, *names)


def _are_numbers(line: dict[str, Any], *names: str) -> bool:
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
    minutes = axis_values(run.metrics, "minutes")
    return [minutes[place] for place in lines_at(run, steps)]


def lines_at(run: RunLines, steps: Sequence[float]) -> list[int]:
    """Places of the first metrics lines at or beyond these agent steps, or of the last line."""
    # A run may go back to an older checkpoint; the search needs steps that never fall.
    known = list(accumulate(axis_values(run.metrics, "steps"), max))
    return [min(bisect_left(known, step), len(known) - 1) for step in steps]
