"""A run of its own for a benchmark: a folder, private sockets and processes that end with it."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from common.config import Settings
from common.devices import ALLOW_CPU_VARIABLE, thread_environment
from common.errors import BenchmarkFailed
from common.lifecycle import PARENT_PID_VARIABLE
from common.run_paths import RunPaths
from common.shared_files import remove_shared, shared_prefix
from launch.options import without_settings
from launch.private_sockets import private_endpoints
from launch.run_dir import make_run_dir, write_config

STOP_DEADLINE_S = 15.0
LAST_LINES = 5


@dataclass(slots=True)
class Scene:
    """Started processes are stopped at the end, whatever happens."""

    settings: Settings
    paths: RunPaths
    folder: Path
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def start_program(self, role: str, *words: str, threads: int = 1) -> subprocess.Popen[str]:
        """One of our programs, with the settings of this scene."""
        module = ("-m", role, "--config", str(self.paths.config))
        return self.start(role, [*module, *words], threads=threads)

    def start(
        self, name: str, words: Sequence[str], *, threads: int | None = 1, talks: bool = False
    ) -> subprocess.Popen[str]:
        """Without a number of threads torch has those that it takes by itself."""
        pipe = subprocess.PIPE if talks else subprocess.DEVNULL
        with self._log(name).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *words],
                env={
                    **without_settings(os.environ),
                    **(thread_environment(threads) if threads else {}),
                    PARENT_PID_VARIABLE: str(os.getpid()),
                    # What is measured is this machine, whatever it has.
                    ALLOW_CPU_VARIABLE: os.environ.get(ALLOW_CPU_VARIABLE, "1"),
                },
                stdin=pipe,
                stdout=pipe if talks else log,
                stderr=log,
                text=True,
                # Ctrl-C in the terminal must reach us alone: we stop them in order.
                process_group=0,
            )
        self.processes[name] = process
        return process

    def check(self) -> None:
        """Raise when a process has ended by itself."""
        for name, process in self.processes.items():
            code = process.poll()
            if code is not None:
                raise BenchmarkFailed(f"{name} ended with {code}: {self.last_lines(name)}")

    def wait_until(self, what: str, condition: Callable[[], bool], deadline_s: float) -> float:
        """Seconds until the condition held."""
        began_s = time.monotonic()
        while not condition():
            self.check()
            if time.monotonic() - began_s > deadline_s:
                raise BenchmarkFailed(f"waited {deadline_s:.0f} s for {what}")
            time.sleep(0.02)
        return time.monotonic() - began_s

    def pause(self, seconds: float) -> None:
        """Let the processes go on; raise when one ends."""
        ends_s = time.monotonic() + seconds
        self.wait_until("time to pass", lambda: time.monotonic() >= ends_s, 2 * seconds + 1)

    def last_lines(self, name: str) -> str:
        log = self._log(name)
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return " / ".join(said.splitlines()[-LAST_LINES:]) or "it said nothing"

    def stop(self) -> None:
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(STOP_DEADLINE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for pipe in (process.stdin, process.stdout):
                # What nobody took is still in the buffer, and closing writes it again.
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()
        self.processes.clear()

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"


@contextmanager
def open_scene(settings: Settings) -> Iterator[Scene]:
    """A run with these settings in a folder that is removed at the end."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="warpzone-bench-")))
        endpoints = stack.enter_context(private_endpoints())
        run = replace(settings.run, runs_dir=str(folder), run="benchmark")
        settings = replace(settings, run=run, endpoints=endpoints)
        paths = RunPaths.of(run)
        make_run_dir(paths)
        write_config(paths, settings)
        stack.callback(remove_shared, shared_prefix(paths))
        scene = Scene(settings, paths, folder)
        stack.callback(scene.stop)
        yield scene


class Talker:
    """A helper process that answers each command, a JSON line, with one JSON line."""

    def __init__(
        self,
        scene: Scene,
        name: str,
        module: str,
        job: Mapping[str, object],
        *,
        threads: int | None = 1,
    ) -> None:
        self._scene = scene
        self._name = name
        self._process = scene.start(
            name, ["-m", module, json.dumps(job)], threads=threads, talks=True
        )

    def tell(self, command: Mapping[str, object]) -> None:
        pipe = self._process.stdin
        if pipe is None:
            return
        try:
            pipe.write(json.dumps(command) + "\n")
            pipe.flush()
        except OSError as error:
            said = self._scene.last_lines(self._name)
            raise BenchmarkFailed(f"{self._name} took no command: {said}") from error

    def hear(self, deadline_s: float) -> dict[str, Any]:
        pipe = self._process.stdout
        ready = pipe is not None and select.select([pipe], [], [], deadline_s)[0]
        line = pipe.readline() if pipe is not None and ready else ""
        if not line:
            raise BenchmarkFailed(
                f"{self._name} did not answer: {self._scene.last_lines(self._name)}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer


def commands() -> Iterator[dict[str, Any]]:
    """What a helper process is told, until the benchmark has ended."""
    for line in sys.stdin:
        yield json.loads(line)


def answer(values: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()
