"""One supervised process: its starts, its pulse, its end, its last words."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import psutil

from common.errors import ExitCode
from common.ids import INCARNATION_VARIABLE, Incarnation
from common.jsonl import last_record
from common.lifecycle import RESTARTED_VARIABLE
from common.logs import open_log
from common.pulse import PULSE_VARIABLE
from launch.plan import ProcessSpec
from launch.pulse_watch import PulseWatch
from launch.restart import SIGNAL_BASE
from launch.stacks import StackRequest, keep_stacks, kernel_state

ChildState = Literal["new", "running", "waiting", "off", "ended"]
LAST_LINES = 50
LONG_LIFE_S = 600.0
ACHIEVEMENTS = {
    "actor": "blocks_acked",
    "replay_server": "replay_push_blocks_total",
    "learner": "updates_here",
    "evaluator": "progress",
    "relay": "progress",
}
"""The field of the heartbeat that says whether a life did what it is for."""


@dataclass(slots=True)
class Child:
    """A slot of the plan and the process that fills it now."""

    spec: ProcessSpec
    process: subprocess.Popen[bytes] | None = None
    state: ChildState = "new"
    restarts: int = 0
    fruitless_restarts: int = 0
    """Restarts since a life achieved something."""
    start_at_s: float = 0.0
    """When a waiting child is started again, on the supervisor's clock."""
    started_s: float = 0.0
    exit_codes: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    """Why its lives ended, in few words, and how often."""
    last_reason: str = ""
    last_dump: Path | None = None
    """Stacks of the last life that hung."""
    incarnation: Incarnation | None = None
    """Of this life; its heartbeats have it."""
    hang: str = ""
    """Why this life is being killed."""
    pulse: PulseWatch | None = None
    _request: StackRequest | None = None

    def start(self, now_s: float, incarnation: Incarnation) -> int:
        """The number of the new process."""
        self.pulse, self._request, self.hang = PulseWatch(now_s), None, ""
        self.started_s, self.incarnation = now_s, incarnation
        self.spec.log_file.parent.mkdir(parents=True, exist_ok=True)
        given = {
            INCARNATION_VARIABLE: str(incarnation),
            PULSE_VARIABLE: str(self.pulse.writer),
        }
        if self.restarts:
            given[RESTARTED_VARIABLE] = "1"
        with os.fdopen(open_log(self.spec.log_file), "ab") as log:
            self.process = subprocess.Popen(
                self.spec.restart_argv if self.restarts else self.spec.argv,
                env={**os.environ, **self.spec.environment, **given},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(self.pulse.writer,),
                # Ctrl-C in the terminal must reach the launcher alone: it knows the order. Not a
                # session of its own: Linux may share cores by session, and niceness counts within.
                process_group=0,
            )
        self.pulse.close_writer()
        self.state = "running"
        return self.process.pid

    def poll(self) -> int | None:
        """The exit code if the process has just ended; a signal counts as 128 + its number."""
        if self.process is None or self.state != "running":
            return None
        code = self.process.poll()
        if code is None:
            return None
        code = code if code >= 0 else SIGNAL_BASE - code
        self.exit_codes.append(code)
        self.state = "ended"
        if self.pulse is not None:
            if self._request is not None and not self.hang:
                # Too early in its start to answer, and the question itself has ended it.
                self._note_hang(self._request, self.process.pid, self.pulse)
            self.pulse.close()
            self.pulse = None
        return code

    def look(self, now_s: float) -> bool:
        """Feel the pulse; True at the moment when a hanging process has to be killed.

        A process that hangs is first asked for its stacks, which takes a look or more.
        """
        if self.pulse is None or self.process is None or self.hang:
            return False
        self.pulse.look(now_s)
        if self._request is not None and self._request.is_settled(now_s):
            self._note_hang(self._request, self.process.pid, self.pulse)
            return True
        if self._request is None and self.pulse.is_over(self.spec.patience):
            self._request = StackRequest(self.spec.log_file, now_s)
            self.signal(signal.SIGUSR1)
        return False

    def _note_hang(self, request: StackRequest, pid: int, pulse: PulseWatch) -> None:
        where = "" if pulse.has_turned else " while starting"
        self.hang = f"no progress for {pulse.silent_s:.0f} s{where}"
        stacks, beat = request.stacks(), self.heartbeat()
        if not stacks:
            self.hang += f", no answer ({kernel_state(pid)})"
        words = (
            f"{self.spec.name} (pid {pid}): {self.hang}; killed\n"
            f"it said last: {beat.get('state', 'nothing')}, progress {beat.get('progress', 0)}"
        )
        path = self.spec.diagnostics / f"{self.spec.name}-{pid}-stacks.txt"
        self.last_dump = keep_stacks(path, words, stacks)

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """At once, with all that it started: ranks of a learner would save and go on otherwise."""
        if self.process is None or self.process.poll() is not None:
            return
        for process in _family(self.process.pid):
            with contextlib.suppress(psutil.Error):
                process.kill()

    def wait(self, timeout_s: float) -> bool:
        """True when it is gone."""
        if self.process is None:
            return True
        try:
            self.process.wait(max(timeout_s, 0.0))
        except subprocess.TimeoutExpired:
            return False
        self.poll()
        return True

    def heartbeat(self) -> dict[str, object]:
        """The last line of its heartbeat file, if this life of the process wrote it."""
        record = last_record(self.spec.heartbeat_file)
        # Not by its pid: of a learner with ranks the process that we started is their launcher.
        is_ours = record is not None and record.get("incarnation") == self.incarnation
        return record if is_ours and record else {}

    def note_end(self, how: str, now_s: float) -> None:
        """Remember why this life ended, and whether it was of any use."""
        self.last_reason = self.hang or how
        self.reasons["no progress" if self.hang else how] += 1
        # A learner that gives up soon, on a full disk or a loss that is not finite, will again.
        gave_up = self.spec.role == "learner" and self.exit_codes[-1] == ExitCode.TEMPORARY
        if self.has_achieved() and not (gave_up and now_s - self.started_s < LONG_LIFE_S):
            self.fruitless_restarts = 0

    def describe_end(self) -> str:
        stacks = f", stacks in {self.last_dump}" if self.hang and self.last_dump else ""
        return f"{self.spec.name}: {self.last_reason}{self._last_words()}{stacks}"

    def _last_words(self) -> str:
        """Why it ended, where it could say so itself."""
        by_itself = not self.hang and self.exit_codes[-1] < SIGNAL_BASE
        said = (tail_lines(self.spec.log_file, 1) or [""])[0] if by_itself else ""
        _, colon, words = said.partition(f"{self.spec.name}: ")
        return f" ({words})" if colon else ""

    def describe_restarts(self) -> str:
        """A line for the summary of a run."""
        why = ", ".join(f"{count} x {reason}" for reason, count in self.reasons.items())
        stacks = f"; last stacks in {self.last_dump}" if self.last_dump else ""
        return f"restarts of {self.spec.name}: {self.restarts} ({why}){stacks}"

    def has_achieved(self) -> bool:
        """Whether this life did what it is for: stored a first block, made an update."""
        value = self.heartbeat().get(ACHIEVEMENTS[self.spec.role], 0)
        return isinstance(value, int) and value > 0

    def last_lines(self) -> list[str]:
        return tail_lines(self.spec.log_file, LAST_LINES)


def _family(pid: int) -> list[psutil.Process]:
    """The process first: it must not replace or mourn the others."""
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def tail_lines(path: Path, count: int) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []
