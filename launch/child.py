"""One supervised process: its starts, its end, its last words."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from common.jsonl import last_record
from launch.plan import ProcessSpec

ChildState = Literal["new", "running", "waiting", "off", "ended"]
LAST_LINES = 50


@dataclass(slots=True)
class Child:
    """A slot of the plan and the process that fills it now."""

    spec: ProcessSpec
    process: subprocess.Popen[bytes] | None = None
    state: ChildState = "new"
    restarts: int = 0
    fruitless_restarts: int = 0
    start_at_s: float = 0.0
    """When a waiting child is started again, on the supervisor's clock."""
    exit_codes: list[int] = field(default_factory=list)

    def start(self) -> None:
        self.spec.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.spec.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.spec.restart_argv if self.restarts else self.spec.argv,
                env={**os.environ, **self.spec.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal must reach the launcher alone: it knows the order. Not a
                # session of its own: Linux may share cores by session, and niceness counts within.
                process_group=0,
            )
        self.state = "running"

    def poll(self) -> int | None:
        """The exit code if the process has just ended; a signal counts as 128 + its number."""
        if self.process is None or self.state != "running":
            return None
        code = self.process.poll()
        if code is None:
            return None
        code = code if code >= 0 else 128 - code
        self.exit_codes.append(code)
        self.state = "ended"
        return code

    def signal(self, number: signal.Signals) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

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
        alive = self.process is not None and record and record.get("pid") == self.process.pid
        return record if alive and record else {}

    def has_achieved(self) -> bool:
        """Whether this life did what it is for: a first block stored, else any progress."""
        beat = self.heartbeat()
        value = beat.get("blocks_acked" if self.spec.role == "actor" else "progress", 0)
        return isinstance(value, int) and value > 0

    def last_lines(self) -> list[str]:
        return tail_lines(self.spec.log_file, LAST_LINES)


def tail_lines(path: Path, count: int) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()[-count:]
    except OSError:
        return []
