"""The three programs as real processes, with a deadline on every wait."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from common.config import ENDPOINT_NAMES, Settings
from common.jsonl import last_record
from common.run_paths import RunPaths
from common.settings_files import settings_to_dict
from tests.waiting import wait_until

REPOSITORY = Path(__file__).resolve().parent.parent
START_DEADLINE_S = 90.0
STOP_DEADLINE_S = 15.0


def free_endpoints() -> dict[str, str]:
    """Loopback endpoints that were free a moment ago."""
    sockets = [socket.socket() for _ in ENDPOINT_NAMES]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
    return {
        name: f"tcp://127.0.0.1:{port}" for name, port in zip(ENDPOINT_NAMES, ports, strict=True)
    }


def start_program(package: str, words: Sequence[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", package, *words],
        cwd=REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def logged_at(log: Path, event: str) -> float:
    """Unix time of the first record of this event."""
    for line in log.read_text().splitlines():
        stamp = re.match(r"(\S+ \S+) INFO \[.*?\] \[\w+\] (.*)", line)
        if stamp is not None and stamp[2].startswith(event):
            return datetime.fromisoformat(stamp[1]).timestamp()
    raise AssertionError(f"{log} has no record {event!r}")


@dataclass
class ProcessSystem:
    """Processes of one run by peer name."""

    settings: Settings
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def paths(self) -> RunPaths:
        return RunPaths.of(self.settings.run)

    def start(self, package: str, index: int = 0, *more: str) -> str:
        """Start a program; its peer name."""
        peer = f"{package}-{index}"
        words = ["--config", str(self.config_file()), "--log-file", str(self.log(peer)), *more]
        if package == "actor":
            words += ["--index", str(index)]
        self.processes[peer] = start_program(package, words)
        return peer

    def config_file(self) -> Path:
        path = self.paths.config
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"settings": settings_to_dict(self.settings)}))
        return path

    def log(self, peer: str) -> Path:
        return self.paths.process_log(peer)

    def beat(self, peer: str) -> dict[str, object]:
        """What the process said of itself last."""
        return last_record(self.paths.process_heartbeat(peer)) or {}

    def number(self, peer: str, name: str) -> float:
        value = self.beat(peer).get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    def wait_for(self, peer: str, name: str, at_least: float) -> None:
        def is_there() -> bool:
            code = self.processes[peer].poll()
            assert code is None, f"{peer} ended with {code}"
            return self.number(peer, name) >= at_least

        wait_until(f"{peer}: {name} >= {at_least}", is_there, START_DEADLINE_S)

    def terminate(self, peer: str) -> int:
        self.processes[peer].send_signal(signal.SIGTERM)
        return self.processes[peer].wait(STOP_DEADLINE_S)

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=STOP_DEADLINE_S)
