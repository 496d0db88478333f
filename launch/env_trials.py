"""One trial of the environment regression: several environments in processes of their own.

Nothing is forked and nothing outlives the trial; a child that does not end in time is made to show
its stack and is then killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal

Mode = Literal["serial", "concurrent"]
Outcome = Literal["ok", "timeout", "failed"]

_ROOT: Final = Path(__file__).resolve().parents[1]
_STACK_DUMP_WAIT_S: Final = 2.0
_KEPT_ERROR_CHARACTERS: Final = 2_000
_THREAD_LIMITS: Final = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan:
    """What every trial of a regression has in common."""

    mode: Mode
    envs: int
    game: str
    stage: str
    core: str
    timeout_s: float
    lock_path: Path
    """Shared by the children in serial mode; a lock of its own, so that training is not held up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildResult:
    index: int
    outcome: Outcome
    exit_code: int
    durations_s: dict[str, float] = field(default_factory=dict)
    """Seconds per construction stage, and `ready` for all of them."""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    trial: int
    wall_s: float
    children: tuple[ChildResult, ...]

    def count(self, outcome: Outcome) -> int:
        return sum(child.outcome == outcome for child in self.children)

    def record(self, plan: TrialPlan) -> dict[str, object]:
        """One line of the report."""
        return {
            "time_unix_s": time.time(),
            "mode": plan.mode,
            "game": plan.game,
            "stage": plan.stage,
            "core": plan.core,
            "envs": plan.envs,
            "timeout_s": plan.timeout_s,
            "trial": self.trial,
            "ok": self.count("ok") == plan.envs,
            "successes": self.count("ok"),
            "timeouts": self.count("timeout"),
            "failures": self.count("failed"),
            "wall_s": round(self.wall_s, 3),
            "children": [asdict(child) for child in self.children],
        }


def probe_command(plan: TrialPlan, index: int) -> list[str]:
    options = {
        "--game": plan.game,
        "--stage": plan.stage,
        "--core": plan.core,
        "--index": str(index),
        "--lock": "host" if plan.mode == "serial" else "none",
        "--lock-path": str(plan.lock_path),
        "--deadline-s": str(plan.timeout_s),
    }
    flags = [word for pair in options.items() for word in pair]
    return [sys.executable, "-m", "actor.env.probe", *flags]


def run_trial(plan: TrialPlan, trial: int) -> TrialResult:
    return run_commands([probe_command(plan, i) for i in range(plan.envs)], trial, plan.timeout_s)


def run_commands(commands: Sequence[list[str]], trial: int, timeout_s: float) -> TrialResult:
    """Run all at once and wait for each until the deadline that they share."""
    began = time.monotonic()
    with _children(commands) as processes:
        results = tuple(
            _collect(process, index, deadline=began + timeout_s)
            for index, process in enumerate(processes)
        )
    return TrialResult(trial=trial, wall_s=time.monotonic() - began, children=results)


@contextmanager
def _children(commands: Sequence[list[str]]) -> Iterator[list[subprocess.Popen[str]]]:
    processes: list[subprocess.Popen[str]] = []
    try:
        for command in commands:
            processes.append(_start(command))
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
        for process in processes:
            # Reads what is left in the pipes, closes them and reaps the process.
            process.communicate()


def _start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        cwd=_ROOT,
        env={**os.environ, **_THREAD_LIMITS},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        # Ctrl-C reaches only us; we end the children ourselves.
        start_new_session=True,
    )


def _collect(process: subprocess.Popen[str], index: int, *, deadline: float) -> ChildResult:
    is_late = False
    try:
        output, errors = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        is_late = True
        output, errors = _end_with_stack(process)
    durations_s, error = _read_report(output)
    # A child that gave up waiting for the lock says so itself.
    is_late = is_late or error.startswith("ConstructionTimeout")
    is_ok = process.returncode == 0 and not is_late and bool(durations_s)
    return ChildResult(
        index=index,
        outcome="ok" if is_ok else "timeout" if is_late else "failed",
        exit_code=process.returncode,
        durations_s=durations_s,
        error="" if is_ok else (error or errors)[-_KEPT_ERROR_CHARACTERS:],
    )


def _end_with_stack(process: subprocess.Popen[str]) -> tuple[str, str]:
    """SIGABRT makes the child's faulthandler write every thread's stack."""
    process.send_signal(signal.SIGABRT)
    try:
        return process.communicate(timeout=_STACK_DUMP_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()


def _read_report(output: str) -> tuple[dict[str, float], str]:
    """Stage durations and error of the probe's JSON line; empty when it wrote none."""
    try:
        report = json.loads(output)
        durations_s = {str(k): round(float(v), 4) for k, v in report.get("durations_s", {}).items()}
        return durations_s, str(report.get("error", ""))
    except (ValueError, AttributeError, TypeError):
        return {}, ""


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that is not below `share` of all of them."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, -int(-share * len(ordered) // 1) - 1))]
