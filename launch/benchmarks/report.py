"""What the benchmarks found: as tables for people, as JSON and CSV for programs."""

from __future__ import annotations

import csv
import json
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Self

from rich.console import Console

from common.errors import ConfigError
from common.run_config import git_commit
from launch.benchmarks.measure import TIME_UNIT, Result, Row
from launch.tables import make_table

_SHOWN_IN_MS_S = 1e-4
_SHOWN_IN_S_S = 1.0
_SMALL_RATIO = 0.1
_LARGE = 100.0
_BUSY_PER_CORE = 0.5
Results = Mapping[str, Result]


def machine_facts() -> dict[str, object]:
    """Without these a figure says nothing."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": git_commit(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "torch": version("torch"),
    }


def notes_on(machine: Mapping[str, object]) -> list[str]:
    """What a reader of any figure has to know of the machine."""
    load, cores = machine.get("load_before"), machine.get("cores")
    if not (isinstance(load, int | float) and isinstance(cores, int)):
        return []
    if load <= _BUSY_PER_CORE * cores:
        return []
    return [f"load {load:g} before, {cores} cores: other programs may have slowed this down"]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


class Findings:
    """What was measured so far: tables as they come, or one document at the end."""

    def __init__(
        self,
        names: Sequence[str],
        machine: Mapping[str, object],
        console: Console,
        *,
        as_document: bool,
    ) -> None:
        self._machine = machine
        self._names = names
        self._console = console
        self._as_document = as_document
        self._results: dict[str, Result] = {}

    def __enter__(self) -> Self:
        if not self._as_document:
            facts = ", ".join(f"{name} {value}" for name, value in self._machine.items())
            for line in (facts, *notes_on(self._machine)):
                self._console.out(line, highlight=False)
        return self

    def __exit__(self, *_: object) -> None:
        """Whatever ended it: what has been measured is worth keeping."""
        if self._as_document:
            is_whole = len(self._results) == len(self._names)
            rest = () if is_whole else (self.missing(),)
            document = as_json(self._results, self._machine, *rest)
            self._console.out(json.dumps(document, indent=2), highlight=False)

    def add(self, name: str, result: Result) -> None:
        self._results[name] = result
        if not self._as_document:
            show({name: result}, self._console)

    @property
    def failed(self) -> bool:
        return any(result.failed for result in self._results.values())

    def missing(self) -> str:
        """In words; a benchmark that was stopped in its middle is not measured."""
        names = [name for name in self._names if name not in self._results]
        return f"not measured: {', '.join(names)}" if names else "all was measured"


def as_json(results: Results, machine: Mapping[str, object], *notes: str) -> dict[str, object]:
    return {
        "machine": dict(machine),
        "results": {name: [asdict(row) for row in result.rows] for name, result in results.items()},
        "lines": {name: list(result.lines) for name, result in results.items() if result.lines},
        "notes": [*notes_on(machine), *_notes(results), *notes],
    }


def _notes(results: Results) -> list[str]:
    return [note for result in results.values() for note in result.notes]


def write_csv(folder: Path, name: str, result: Result, machine: Mapping[str, object]) -> Path:
    """One file with a line per figure, or the benchmark's own lines; the machine in each line."""
    path = folder / f"bench_{name}_{time.strftime('%Y%m%d-%H%M%S')}.csv"
    lines = [{**line, **machine} for line in result.lines or map(asdict, result.rows)]
    if not lines:
        raise ConfigError(f"{name} measured nothing: {'; '.join(result.notes)}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(lines[0]))
            writer.writeheader()
            writer.writerows(lines)
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error
    return path


def show(results: Results, console: Console) -> None:
    for name, result in results.items():
        titles = ("", "unit", "median", "quartiles", "ratio")
        rows = ([row.contender, *_cells(row)] for row in result.rows)
        console.print(make_table(titles, rows, texts=("", "unit"), title=name))
        for note in result.notes:
            console.print(note, markup=False, highlight=False, soft_wrap=True)


def _cells(row: Row) -> tuple[str, str, str, str]:
    """Unit, median, quartiles and ratio; times on a scale that fits them."""
    unit, scale = row.unit, 1.0
    if unit.partition("/")[0] == TIME_UNIT and row.median < _SHOWN_IN_S_S:
        short, scale = ("ms", 1e3) if row.median >= _SHOWN_IN_MS_S else ("us", 1e6)
        unit = short + unit.removeprefix(TIME_UNIT)
    median, low, high = (
        _number(value * scale) for value in (row.median, row.low_quartile, row.high_quartile)
    )
    return unit, median, f"{low} - {high}", _ratio(row.ratio)


def _number(value: float) -> str:
    if abs(value) >= _LARGE:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.4g}"


def _ratio(ratio: float | None) -> str:
    if ratio is None:
        return ""
    return f"{ratio:.2f}" if ratio >= _SMALL_RATIO else f"{ratio:.3f}"
