"""A run under the launcher for tests that break it: who lives, what was said, how it ends."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from actor.env.corridor import FAULTS_VARIABLE
from common.jsonl import last_record, read_jsonl
from common.run_paths import RunPaths
from tests.processes import end, processes_mentioning, start, write_corridor
from tests.waiting import wait_until

START_DEADLINE_S = 90.0
STOP_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    output: str
    took_s: float


class LaunchedRun:
    """`python launch/local.py` on the corridor; close it whatever happens."""

    def __init__(
        self,
        folder: Path,
        *words: str,
        faults: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.paths = RunPaths(folder / "r")
        preset = write_corridor(folder)
        place = ("--preset", str(preset), "--runs-dir", str(folder), "--run", "r")
        self.launcher = start(
            "launch/local.py",
            *place,
            *("--metrics-interval-s", "0.2", *words),
            env={**(env or {}), FAULTS_VARIABLE: json.dumps(faults or {})},
        )

    def beat(self, peer: str) -> dict[str, object]:
        return last_record(self.paths.process_heartbeat(peer)) or {}

    def number(self, peer: str, name: str) -> float:
        value = self.beat(peer).get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    def largest(self, peer: str, name: str, since_s: float) -> float:
        """The largest value that a process told since then."""
        told = read_jsonl(self.paths.process_heartbeat(peer))
        return max(
            float(str(r[name])) for r in told if name in r and float(str(r["time"])) >= since_s
        )

    def pid(self, peer: str) -> int:
        return int(self.number(peer, "pid"))

    def pids(self) -> dict[str, int]:
        return {path.stem: self.pid(path.stem) for path in self.paths.root.glob("heartbeats/*")}

    def kill(self, peer: str, number: signal.Signals = signal.SIGKILL) -> int:
        """The process that got the signal."""
        pid = self.pid(peer)
        os.kill(pid, number)
        return pid

    def rss_mb(self, peer: str) -> float:
        return float(psutil.Process(self.pid(peer)).memory_info().rss) / 2**20

    def wait(
        self, what: str, condition: Callable[[], bool], deadline_s: float = START_DEADLINE_S
    ) -> float:
        def is_there() -> bool:
            assert self.launcher.poll() is None, self.launcher.communicate()[0]
            return condition()

        return wait_until(what, is_there, deadline_s)

    def wait_for(
        self, peer: str, name: str, above: float, deadline_s: float = START_DEADLINE_S
    ) -> float:
        return self.wait(
            f"{peer}: {name} > {above}", lambda: self.number(peer, name) > above, deadline_s
        )

    def wait_for_new_life(
        self, peer: str, old_pid: int, name: str, deadline_s: float = START_DEADLINE_S
    ) -> float:
        """Seconds until another process of that name has achieved something."""
        return self.wait(
            f"another {peer} with {name}",
            lambda: self.pid(peer) != old_pid and self.number(peer, name) > 0,
            deadline_s,
        )

    def log(self, peer: str = "launcher-0") -> str:
        path = self.paths.process_log(peer)
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def wait_for_news(self, words: str, before: str) -> float:
        """Seconds until the launcher's log says these words once more than `before`."""
        known = before.count(words)
        return self.wait(words, lambda: self.log().count(words) > known)

    def last_beats(self, peer: str) -> dict[int, dict[str, object]]:
        """Of every life of a process, by process number."""
        return {
            int(str(record["pid"])): record
            for record in read_jsonl(self.paths.process_heartbeat(peer))
        }

    def left(self) -> list[psutil.Process]:
        """Processes of this run that are still there."""
        return processes_mentioning(str(self.folder))

    def stop(self, number: signal.Signals) -> Ended:
        began_s = time.monotonic()
        self.launcher.send_signal(number)
        return self.ended(began_s)

    def ended(self, began_s: float, deadline_s: float = STOP_DEADLINE_S) -> Ended:
        output, _ = self.launcher.communicate(timeout=deadline_s)
        return Ended(self.launcher.returncode, output, time.monotonic() - began_s)

    def close(self) -> None:
        end(self.launcher)
        for process in self.left():
            process.kill()
