"""Whole runs as a person starts them, and what they wrote about themselves."""

from __future__ import annotations

import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from common.config import Settings
from common.errors import BenchmarkFailed
from common.jsonl import last_record, read_jsonl
from common.phases import PHASES
from common.run_paths import RunPaths
from common.settings_files import load_settings
from launch.benchmarks.processor import cores_between, worked
from launch.benchmarks.scene import Scene

START_DEADLINE_S = 180.0
STOP_DEADLINE_S = 40.0
LONGEST_RUN_MINUTES = 20.0
A_RATE = 2
"""Lines that it takes."""
RUN = "benchmark"
LOCAL = "launch.local"
LAUNCHER = "launcher"
ROLES = {"actors": "actor", "replay": "replay_server", "learner": "learner"}
Lines = Sequence[Mapping[str, object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """What a run did from its first update on, or until its end where it never learned."""

    metrics: Lines
    beats: Mapping[str, Lines]
    """Heartbeats of every process of a part."""
    duration_s: float
    cores: Mapping[str, float] = field(default_factory=dict)
    """Processor seconds per second of each program, where they were looked at."""
    batch_size: int = 0
    """Transitions per update."""

    def per_second(self, counter: str) -> float:
        if len(self.metrics) < A_RATE:
            return 0.0
        first, last = self.metrics[0], self.metrics[-1]
        elapsed_s = number(last, "time") - number(first, "time")
        return (number(last, counter) - number(first, counter)) / max(elapsed_s, 1e-9)

    def samples_per_agent_step(self) -> float:
        """What it learned from, for each step that was played meanwhile."""
        steps_per_s = self.per_second("global_step")
        return self.per_second("updates") * self.batch_size / max(steps_per_s, 1e-9)

    def mean(self, name: str) -> float:
        """Of a metric, over the lines that know it; 0 where none does."""
        known = [number(line, name) for line in self.metrics if line.get(name) is not None]
        return statistics.fmean(known) if known else 0.0

    def last(self, name: str) -> object:
        """The newest value that is known, or None."""
        known = [line[name] for line in self.metrics if line.get(name) is not None]
        return known[-1] if known else None

    def shares(self, part: str) -> dict[str, list[float]]:
        """Of every phase, in all heartbeats of the part."""
        told = [beat for beat in self.beats[part] if "share_wait" in beat or "share_send" in beat]
        shares = {name: [number(beat, f"share_{name}") for beat in told] for name in PHASES[part]}
        return with_other(shares)


def with_other(shares: Mapping[str, list[float]]) -> dict[str, list[float]]:
    """`other` is what no phase claims: the turns of the loop."""
    claimed = [sum(values) for values in zip(*shares.values(), strict=True)]
    return {**shares, "other": [max(1.0 - share, 0.0) for share in claimed]}


def number(record: Mapping[str, object], name: str) -> float:
    value = record.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


@contextmanager
def launched(
    words: Sequence[str],
    longest_minutes: float = LONGEST_RUN_MINUTES,
    launcher: str = LOCAL,
) -> Iterator[Scene]:
    """A run in a folder of its own; stopped as with Ctrl-C, so that it saves and cleans up."""
    with tempfile.TemporaryDirectory(prefix="warpzone-bench-") as name:
        folder = Path(name)
        scene = Scene(Settings(), RunPaths(folder / RUN), folder)
        # The limit ends a run whose benchmark was killed before it could.
        limit = ("--max-minutes", str(longest_minutes))
        place = ("--runs-dir", name, "--run", RUN, "--plain", *limit)
        process = scene.start(LAUNCHER, ["-m", launcher, *words, *place])
        try:
            yield scene
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                # Twice is at once.
                process.send_signal(signal.SIGINT)
            scene.stop()


def watch_run(
    words: Sequence[str], seconds: float, *, settle_s: float = 0.0, launcher: str = LOCAL
) -> RunFigures:
    """Run until it learns and has settled, then for some seconds more.

    At first the actors fill the slack that the balance leaves them: that is faster than what they
    can keep up.
    """
    with launched(words, launcher=launcher) as scene:
        paths = scene.paths
        scene.wait_until("the first update", lambda: count_updates(paths) > 0, START_DEADLINE_S)
        scene.pause(settle_s)
        launcher_pid = scene.processes[LAUNCHER].pid
        began_s, began_at, before = time.monotonic(), time.time(), worked(launcher_pid)
        scene.wait_until(
            "the end of the window",
            _both(
                lambda: time.monotonic() - began_s >= seconds,
                lambda: len(_after(paths.metrics, began_at)) >= A_RATE,
            ),
            seconds + START_DEADLINE_S,
        )
        elapsed_s = time.monotonic() - began_s
        cores = cores_between(before, worked(launcher_pid), elapsed_s)
        batch_size = load_settings(paths.config).learner.batch_size
        figures = read_figures(paths, began_at, elapsed_s)
        return replace(figures, cores=cores, batch_size=batch_size)


def read_figures(paths: RunPaths, since: float, duration_s: float) -> RunFigures:
    """Lines of the files of a run that were written after `since`, in seconds since 1970."""
    beats = {
        part: [
            beat
            for file in sorted(paths.root.glob(f"heartbeats/{role}-*.jsonl"))
            for beat in _after(file, since)
        ]
        for part, role in ROLES.items()
    }
    return RunFigures(metrics=_after(paths.metrics, since), beats=beats, duration_s=duration_s)


def _after(path: Path, since: float) -> list[dict[str, object]]:
    return [line for line in read_jsonl(path) if number(line, "time") >= since]


def count_updates(paths: RunPaths) -> float:
    """As the newest line of metrics tells it."""
    return number(last_record(paths.metrics) or {}, "updates")


def _both(first: Callable[[], bool], second: Callable[[], bool]) -> Callable[[], bool]:
    return lambda: first() and second()


def require_figures(figures: RunFigures, what: str) -> RunFigures:
    """Two lines at least: a rate of fewer would be told as none at all."""
    if len(figures.metrics) < A_RATE:
        found = len(figures.metrics)
        raise BenchmarkFailed(
            f"{what} wrote {found} lines of metrics in time, a rate takes {A_RATE}"
        )
    return figures
