"""Builds environments one at a time per host, and says where the time went or where it stopped.

Stages: start (before the lock), lock, import, construct, reset, ready. Each becomes one line of the
diagnostics file with its duration; a line is written when its stage ends.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from actor.env.factory import make_env, prepare_env
from actor.env.host_lock import HostLock
from actor.env.interface import EnvProtocol
from common.config import EnvSettings
from common.errors import ExitCode
from common.jsonl import JsonlWriter

Overrun = Callable[[str], None]


def end_process(message: str) -> None:
    """Leave a process that hangs inside the emulator, where no exception can reach it."""
    sys.stderr.write(message + "\n")
    faulthandler.dump_traceback(all_threads=True)
    os._exit(ExitCode.TEMPORARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstructionPlan:
    """Who builds, under which lock and until when."""

    role: str
    index: int
    deadline_s: float
    """Usually `construction_deadline_s`, for waiting and building together."""
    lock_path: Path | None
    """None builds at once, beside whoever else is building."""
    diagnostics_path: Path | None = None
    start_delay_s: float = 0.0
    """Pause before asking for the lock."""
    on_overrun: Overrun = end_process
    """Called from a watchdog thread when building does not end before the deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The three parts of building; apart, so that each is timed."""

    prepare: Callable[[], None]
    construct: Callable[[], EnvProtocol]
    reset: Callable[[EnvProtocol], object]

    @classmethod
    def of(cls, settings: EnvSettings) -> Recipe:
        return cls(
            prepare=lambda: prepare_env(settings),
            construct=lambda: make_env(settings),
            reset=lambda env: env.reset(),
        )


class StageLog:
    """Measures stages and appends them to the diagnostics file."""

    def __init__(self, plan: ConstructionPlan, clock: Callable[[], float]) -> None:
        self._plan = plan
        self._clock = clock
        self._began = self._stage_began = clock()
        self.stage = "start"
        self.durations_s: dict[str, float] = {}

    def finish(self, stage: str, *, next_stage: str) -> None:
        """Stages are written when they end; `ready` carries the time of all of them."""
        now = self._clock()
        self.durations_s[stage] = now - self._stage_began
        self._append(stage, now - self._stage_began)
        self._stage_began = now
        self.stage = next_stage

    def finish_all(self) -> None:
        total_s = self._clock() - self._began
        self.durations_s["ready"] = total_s
        self._append("ready", total_s)

    def fail(self, error: str) -> None:
        self._append("failed", self._clock() - self._stage_began, error=error)

    def _append(self, event: str, duration_s: float, **details: str) -> None:
        path = self._plan.diagnostics_path
        if path is None:
            return
        record = {
            "time_unix_s": time.time(),
            "pid": os.getpid(),
            "role": self._plan.role,
            "index": self._plan.index,
            "event": event,
            "stage": self.stage,
            "duration_s": round(duration_s, 6),
            **details,
        }
        writer = JsonlWriter(path)
        writer.write(record)
        writer.close()


def build_serially(
    recipe: Recipe, plan: ConstructionPlan, *, clock: Callable[[], float] = time.monotonic
) -> tuple[EnvProtocol, dict[str, float]]:
    """A reset environment and the seconds of each stage."""
    log = StageLog(plan, clock)
    try:
        env = _build(recipe, plan, log, clock)
    except BaseException as exc:
        log.fail(f"{type(exc).__name__}: {exc}")
        raise
    log.finish_all()
    return env, log.durations_s


def _build(
    recipe: Recipe, plan: ConstructionPlan, log: StageLog, clock: Callable[[], float]
) -> EnvProtocol:
    deadline = clock() + plan.start_delay_s + plan.deadline_s
    time.sleep(plan.start_delay_s)
    log.finish("start", next_stage="lock")
    lock = None
    if plan.lock_path is not None:
        lock = HostLock(plan.lock_path, role=plan.role, index=plan.index)
    with (
        lock.held(deadline=deadline, clock=clock) if lock else nullcontext(),
        # Entered with the lock in hand: who only waits gets an exception, not a killed process.
        _watchdog(plan, log, deadline=deadline, clock=clock),
    ):
        return _build_holding(recipe, log, lock)


def _build_holding(recipe: Recipe, log: StageLog, lock: HostLock | None) -> EnvProtocol:
    def enter(stage: str) -> None:
        log.finish(log.stage, next_stage=stage)
        if lock is not None:
            lock.note_stage(stage)

    enter("import")
    recipe.prepare()
    enter("construct")
    env = recipe.construct()
    enter("reset")
    try:
        recipe.reset(env)
    except BaseException:
        env.close()
        raise
    log.finish("reset", next_stage="ready")
    return env


@contextmanager
def _watchdog(
    plan: ConstructionPlan, log: StageLog, *, deadline: float, clock: Callable[[], float]
) -> Iterator[None]:
    def overrun() -> None:
        message = (
            f"building the environment of {plan.role}-{plan.index} did not end within "
            f"{plan.deadline_s:.0f} s; it hangs in stage '{log.stage}'"
        )
        log.fail(f"ConstructionTimeout: {message}")
        plan.on_overrun(message)

    timer = threading.Timer(max(0.0, deadline - clock()), overrun)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
