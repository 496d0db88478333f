"""One start of a local run, from the first process to the last line of the summary."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from common.config import Settings
from common.errors import EnvironmentFailed, ExitCode
from common.game import construction_deadline_s
from common.jsonl import last_record
from common.lifecycle import StopFlag
from common.resume import ResumePoint, find_resume
from common.role_lock import sole_role
from common.run_paths import RunPaths
from common.settings_files import setting_differences
from common.shared_files import remove_shared, shared_prefix
from launch.advisor import Advisor
from launch.exports import export_news, exporting
from launch.live_view import ProcessRow, Snapshot, View, open_view
from launch.memory_watch import MemoryWatch
from launch.plan import plan_processes
from launch.reaper import reaper
from launch.run_dir import write_config
from launch.saved_replay_news import replay_news
from launch.supervisor import Supervisor

log = logging.getLogger(__name__)

POLL_S = 0.1
SHOW_INTERVAL_S = 0.5
SECONDS_PER_MINUTE = 60.0
SILENT_AFTER_S = 3.0


@dataclass(slots=True, kw_only=True)
class Session:
    """What the parts of a start share."""

    settings: Settings
    paths: RunPaths
    console: Console
    stop: StopFlag
    plain: bool
    resume: ResumePoint | None
    auto_mem: bool = False
    """When memory runs out, go on with less."""
    on_kill: Callable[[], None] = lambda: None
    """What must still happen when everything is killed at once."""
    started_s: float = field(default_factory=time.monotonic)
    _earlier_metrics: dict[str, object] | None = field(init=False)
    """Of an earlier start: its buffer and its rates are gone."""
    _advisor: Advisor = field(init=False)

    def __post_init__(self) -> None:
        self._earlier_metrics = last_record(self.paths.metrics)
        self._advisor = Advisor(self.settings)

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    @property
    def resume_word(self) -> str:
        return "none" if self.resume is None else str(self.resume.path)

    def out_of_time(self) -> bool:
        limit = self.settings.run.max_minutes
        return 0 < limit * SECONDS_PER_MINUTE <= self.elapsed_s

    def say(self, line: str) -> None:
        """Above the live view, which is drawn anew below it."""
        self.console.print(line, style="yellow", markup=False, highlight=False, soft_wrap=True)

    def show(self, view: View, processes: list[ProcessRow]) -> None:
        """Figures, and what they advise."""
        snapshot = self.snapshot(processes)
        view.show(snapshot)
        for hint in self._advisor.look(snapshot.metrics, self.elapsed_s):
            self.say(f"[train][hint] {hint}")
            log.info("[hint]", extra={"text": hint})

    @contextmanager
    def exporting(self) -> Iterator[None]:
        """What other programs read is announced, and written meanwhile."""
        chosen = self.settings.diagnosis
        for line in export_news(chosen, self.paths):
            style = "yellow" if line.startswith("WARNING") else None
            self.console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
        with exporting(chosen, self.paths):
            yield

    def snapshot(self, processes: list[ProcessRow]) -> Snapshot:
        metrics = last_record(self.paths.metrics) or {}
        if metrics == self._earlier_metrics:
            metrics = {}
        return Snapshot(
            run=self.settings.run.run,
            stages=self.settings.env.stage_names,
            elapsed_s=self.elapsed_s,
            budget=self._budget(metrics),
            metrics=metrics,
            processes=processes,
        )

    def _budget(self, metrics: Mapping[str, object]) -> float | None:
        """The share of whichever limit is nearest."""
        run, shares = self.settings.run, []
        if run.max_minutes:
            shares.append(self.elapsed_s / (run.max_minutes * SECONDS_PER_MINUTE))
        limits = {"global_step": run.max_agent_steps, "updates": run.max_updates}
        for name, limit in limits.items():
            reached = metrics.get(name)
            if limit and isinstance(reached, int):
                shares.append(reached / limit)
        return max(shares, default=None)


def run_processes(session: Session) -> ExitCode:
    """Run everything to its end, with less where memory runs out; how it ended."""
    with session.exporting():
        supervisor = _run_once(session)
        if supervisor.shortage is not None:
            supervisor = _run_with_less(session, supervisor)
    _explain(session, supervisor)
    if supervisor.outcome is not None:
        return supervisor.outcome
    return ExitCode.DONE if session.out_of_time() else session.stop.exit_code


def _run_with_less(session: Session, supervisor: Supervisor) -> Supervisor:
    """Rung by rung, each from the newest checkpoint, until it fits or no rung is left."""
    # Here, because `--help` should not wait for torch.
    from launch.auto_memory import RungCounter  # noqa: PLC0415

    rungs = RungCounter()
    while supervisor.shortage is not None and not (session.stop.is_set() or session.out_of_time()):
        lower = rungs.step_down(session.settings, supervisor.shortage)
        if lower is None:
            session.say("auto-mem: no rung is left; free some memory, then start again")
            break
        before = session.settings
        session.settings, line = lower
        remove_shared(shared_prefix(session.paths))
        write_config(session.paths, session.settings)
        session.resume = find_resume(session.paths.root) or session.resume
        session.say(f"{line}; resumes from {session.resume_word}")
        if session.resume is not None:
            changed = setting_differences(before, session.settings)
            for news in replay_news(session.settings, session.paths, session.resume, changed):
                session.say(news)
        supervisor = _run_once(session)
    return supervisor


def _run_once(session: Session) -> Supervisor:
    """Start everything, watch it, stop it in order."""
    specs = plan_processes(session.settings, session.paths, resume=session.resume_word)
    supervisor = Supervisor(
        specs,
        min_actors=session.settings.actor.min_actors,
        memory=MemoryWatch() if session.auto_mem else None,
    )

    def kill() -> None:
        supervisor.kill()
        with contextlib.suppress(OSError):
            # Not the console: whoever was printing when the signal came may hold its lock.
            os.write(2, b"killed at once; what was saved before is whole\n")
        session.on_kill()

    session.stop.on_second_signal = kill
    view = open_view(session.console, plain=session.plain)
    with reaper():
        try:
            if session.settings.env.env_prewarm:
                prewarm(session)
            supervisor.start()
            _watch(session, supervisor, view)
        finally:
            view.close()
            session.console.print("stopping: actors, learner, replay server", highlight=False)
            supervisor.stop()
    return supervisor


def prewarm(session: Session) -> None:
    """Build one environment before the actors: files are cached, and faults show at once."""
    env = session.settings.env
    words = ("--game", env.game, "--stage", env.stage_names[0], "--core", env.core)
    try:
        result = subprocess.run(
            [sys.executable, "-m", "actor.env.probe", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=construction_deadline_s(1),
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentFailed(f"building an environment took over {error.timeout} s") from error
    if result.returncode != 0:
        raise EnvironmentFailed(f"no environment can be built here: {result.stdout.strip()}")


def _watch(session: Session, supervisor: Supervisor, view: View) -> None:
    shown_s = -SHOW_INTERVAL_S
    while not (session.stop.is_set() or session.out_of_time() or supervisor.outcome is not None):
        supervisor.tick()
        while supervisor.news:
            session.say(supervisor.news.pop(0))
        if session.elapsed_s - shown_s >= SHOW_INTERVAL_S:
            shown_s = session.elapsed_s
            session.show(view, process_rows(supervisor))
        time.sleep(POLL_S)


def process_rows(supervisor: Supervisor) -> list[ProcessRow]:
    rows = []
    for child in supervisor.children:
        pulse = child.pulse
        silent_s = pulse.silent_s if pulse is not None and pulse.has_turned else 0.0
        rows.append(
            ProcessRow(
                name=child.spec.name,
                state=child.state,
                restarts=child.restarts,
                reason=child.last_reason,
                beat=child.heartbeat(),
                silent_s=silent_s if silent_s > SILENT_AFTER_S else None,
            )
        )
    return rows


def _explain(session: Session, supervisor: Supervisor) -> None:
    console = session.console
    for child in supervisor.children:
        if child.reasons:
            session.say(child.describe_restarts())
    if supervisor.outcome in (None, ExitCode.DONE):
        return
    console.print(f"the run ended: {supervisor.reason}", style="red", markup=False)
    if supervisor.blame is not None:
        console.print(f"last lines of {supervisor.blame.spec.log_file}:", markup=False)
        for line in supervisor.blame.last_lines():
            console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)


def run_lockstep(session: Session) -> ExitCode:
    """The same in this process."""
    # Here, because `--help` should not wait for NumPy.
    from launch.lockstep import Lockstep  # noqa: PLC0415

    resume = Path(session.resume.path) if session.resume is not None else None
    view = open_view(session.console, plain=session.plain)
    shown_s = -SHOW_INTERVAL_S

    def show() -> None:
        nonlocal shown_s
        if session.elapsed_s - shown_s >= SHOW_INTERVAL_S:
            shown_s = session.elapsed_s
            session.show(view, [])

    try:
        with (
            sole_role(session.paths, "learner"),
            sole_role(session.paths, "replay_server"),
            session.exporting(),
        ):
            system = Lockstep(session.settings, resume=resume)
            system.run(lambda: session.stop.is_set() or session.out_of_time(), show)
    finally:
        view.close()
    return session.stop.exit_code
