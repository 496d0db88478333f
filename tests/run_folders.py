"""Folders of runs as their processes leave them, for tests of whoever reads them."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from common.metrics import METRIC_NAMES
from common.run_paths import RunPaths

LAUNCHER_LINE = (
    "2026-11-17 23:55:58,916 WARNING [launcher-0 pid=2600 run=r] process ended, restarting "
    "child={peer} reason={reason} exit_code=137 restarts=4 delay_s=0.73\n"
)


def write_lines(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, separators=(",", ":")) + "\n")


def metrics_record(step: int, **values: object) -> dict[str, object]:
    """A line of metrics.jsonl with every name, null where nothing is given."""
    known: dict[str, object] = dict.fromkeys(sorted(METRIC_NAMES))
    when = {"time": 1_700_000_000.0 + step, "global_step": step, "run_time_s": float(step)}
    return {**known, **when, **values}


def score(step: int, clears: int = 5, **values: object) -> dict[str, object]:
    """A line of eval.jsonl with ten episodes."""
    return {
        **{"time": 1_700_000_000.0 + step, "global_step": step, "stage": "1-1", "episodes": 10},
        **{"clears": clears, "clear_rate": clears / 10, "clear_rate_low": 0.2},
        **{"clear_rate_high": 0.8, "x_p10": 100.0, "x_p50": 900.0, "x_p90": 2_000.0},
        **values,
    }


def beat(peer: str, **values: object) -> dict[str, object]:
    """A heartbeat of this process, now."""
    role, _, index = peer.rpartition("-")
    return {
        **{"time": time.time(), "role": role, "index": int(index), "pid": os.getpid()},
        **{"incarnation": 1, "uptime_s": 10.0, "state": "playing", "progress": 100},
        **{"progress_per_s": 20.0, "cpu_percent": 50.0, "rss_mb": 200.0, "threads": 3},
        **{"open_files": 17, **values},
    }


def make_run(folder: Path, name: str = "r", *, rows: int = 20, interval_s: float = 1.0) -> RunPaths:
    """A run with metrics, evaluations, settings and the heartbeats of a learner and two actors."""
    paths = RunPaths(folder / name)
    paths.root.mkdir(parents=True)
    settings = {"run": {"metrics_interval_s": interval_s}, "replay": {"learning_starts": 500}}
    paths.config.write_text(json.dumps({"settings": settings}), encoding="utf-8")
    lines = (metrics_record(100 * n, updates=n, loss_total=1.0 / (n + 1)) for n in range(rows))
    write_lines(paths.metrics, lines)
    write_lines(paths.evaluations, [score(500), score(1_000, clears=9, clear_rate_high=0.98)])
    for peer in ("learner-0", "actor-0", "actor-1"):
        write_lines(paths.process_heartbeat(peer), [beat(peer)])
    return paths


def end_run(paths: RunPaths) -> None:
    """As it is long after its last process has gone."""
    for file in (paths.root / "heartbeats").iterdir():
        file.unlink()
        # No process has such a number.
        write_lines(file, [beat(file.stem, pid=2**22 + 1, time=1_000.0)])


def note_restart(paths: RunPaths, peer: str, reason: str, *, launcher: int = 0) -> None:
    log = paths.process_log(f"launcher-{launcher}")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file:
        file.write(LAUNCHER_LINE.format(peer=peer, reason=reason))
