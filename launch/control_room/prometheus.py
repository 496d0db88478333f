"""The newest figures of runs that go on, in the text format of Prometheus.

Labels are names of runs, processes, stages and boards that were checked: no peer can invent one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from common.metrics import METRICS
from launch.control_room.episode_log import STAGE_PATTERN
from launch.control_room.now import number

PREFIX: Final = "warpzone_"
MAX_RUNS: Final = 8
"""Fewer than the library keeps readers for: a scrape must not push out those of viewers."""
UNITLESS: Final = frozenset({"time"})
PROCESS_FIELDS: Final = {
    "progress_per_s": "agent steps, messages or updates per second",
    "cpu_percent": "CPU time; 100 is one core",
    "rss_mb": "resident memory in MB",
    "uptime_s": "seconds since this start",
    "open_files": "open file descriptors",
}
EVALUATION_FIELDS: Final = {
    "clear_rate": "share of greedy episodes that reached the flag",
    "clear_rate_low": "lower end of its 95 % Wilson interval",
    "clear_rate_high": "upper end of its 95 % Wilson interval",
    "x_p50": "median farthest x of greedy episodes",
}
GPU_FIELDS: Final = {
    "util_percent": "utilisation of a GPU",
    "mem_used_mb": "memory in use on a GPU, MB",
    "temperature_c": "temperature of a GPU, degrees Celsius",
    "power_w": "power drawn by a GPU, W",
}
State = Mapping[str, object]
Sample = tuple[dict[str, object], float]


def exposition(states: Sequence[State]) -> str:
    """One page for all runs; `states` are those of `RunReader.state`."""
    lines: list[str] = []
    for metric in METRICS:
        if metric.kind == "text" or metric.name in UNITLESS:
            continue
        samples = _run_samples(states, metric.name)
        kind = "counter" if metric.kind == "counter" else "gauge"
        help_text = f"{metric.meaning} ({metric.unit})"
        lines += _family(PREFIX + metric.name, kind, help_text, samples)
    lines += _family(PREFIX + "process_up", "gauge", "whether a process works", _ups(states))
    lines += _family(
        PREFIX + "process_restarts_total", "counter", "lives that ended", _restarts(states)
    )
    for name, meaning in PROCESS_FIELDS.items():
        samples = list(_process_samples(states, name))
        lines += _family(f"{PREFIX}process_{name}", "gauge", meaning, samples)
    for name, meaning in EVALUATION_FIELDS.items():
        samples = list(_evaluation_samples(states, name))
        lines += _family(f"{PREFIX}eval_{name}", "gauge", meaning, samples)
    for name, meaning in GPU_FIELDS.items():
        samples = list(_gpu_samples(states, name))
        lines += _family(f"{PREFIX}gpu_{name}", "gauge", meaning, samples)
    return "\n".join([*lines, ""])


def _family(name: str, kind: str, meaning: str, samples: Iterable[Sample]) -> list[str]:
    rows = [f"{name}{{{_labels(labels)}}} {value:.10g}" for labels, value in samples]
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *rows] if rows else []


def _labels(labels: Mapping[str, object]) -> str:
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels.items())


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _run_samples(states: Sequence[State], name: str) -> list[Sample]:
    found = []
    for state in states:
        metrics = state.get("metrics")
        told = metrics.get(name) if isinstance(metrics, Mapping) else None
        value = float(told) if isinstance(told, bool) else number(told)
        if value is not None:
            found.append(({"run": state["run"]}, value))
    return found


def _rows(state: State, name: str) -> list[Mapping[str, object]]:
    rows = state.get(name)
    return [row for row in rows if isinstance(row, Mapping)] if isinstance(rows, list) else []


def _ups(states: Sequence[State]) -> list[Sample]:
    return [
        ({"run": state["run"], "process": row["name"]}, float(row["level"] in ("good", "waiting")))
        for state in states
        for row in _rows(state, "processes")
    ]


def _restarts(states: Sequence[State]) -> list[Sample]:
    return [
        ({"run": state["run"], "process": row["name"]}, number(row["restarts"]) or 0.0)
        for state in states
        for row in _rows(state, "processes")
    ]


def _process_samples(states: Sequence[State], name: str) -> Iterable[Sample]:
    for state in states:
        for row in _rows(state, "processes"):
            beat = row.get("beat")
            value = number(beat.get(name)) if isinstance(beat, Mapping) else None
            if value is not None:
                yield {"run": state["run"], "process": row["name"]}, value


def _evaluation_samples(states: Sequence[State], name: str) -> Iterable[Sample]:
    for state in states:
        newest: dict[str, float] = {}
        # Newest first, so the first of each stage counts.
        for row in _rows(state, "evaluations"):
            stage, value = str(row.get("stage")), number(row.get(name))
            if value is not None and STAGE_PATTERN.fullmatch(stage):
                newest.setdefault(stage, value)
        for stage, value in newest.items():
            yield {"run": state["run"], "stage": stage}, value


def _gpu_samples(states: Sequence[State], name: str) -> Iterable[Sample]:
    for state in states:
        for row in _rows(state, "gpus"):
            value = number(row.get(name))
            if value is not None:
                yield {"run": state["run"], "gpu": row["index"]}, value
