"""Several worker processes with a job each on standard input and JSON lines as answers."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from common.devices import thread_environment
from common.errors import ConfigError, ExitCode, MarioError

Answer = TypeVar("Answer")
_ROOT = Path(__file__).resolve().parents[1]
_SHOWN_ERROR_CHARACTERS = 2_000


@dataclass(slots=True, eq=False)
class _Worker:
    process: subprocess.Popen[str]
    errors: IO[str]
    """A file, not a pipe: a worker with much to say must not wait for us."""


_Answers = queue.Queue[dict[str, object] | _Worker]


def run_workers(module: str, jobs: Sequence[Mapping[str, object]]) -> Iterator[dict[str, object]]:
    """All answers as they come. A worker that fails ends all of them with its last words."""
    answers: _Answers = queue.Queue()
    # Without this a SIGTERM would leave the workers behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))
    with _started(module, len(jobs)) as workers:
        threads = [
            threading.Thread(target=_converse, args=(worker, job, answers), daemon=True)
            for worker, job in zip(workers, jobs, strict=True)
        ]
        for thread in threads:
            thread.start()
        running = len(workers)
        while running:
            item = answers.get()
            if isinstance(item, dict):
                yield item
            else:
                running -= 1
                _require_success(item)


def with_progress(answers: Iterable[Answer], total: int, what: str) -> Iterator[Answer]:
    """The same answers, with a bar on standard error where somebody watches."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as progress:
        bar = progress.add_task(what, total=total)
        for answer in answers:
            progress.advance(bar)
            yield answer


def split(items: Sequence[object], parts: int) -> list[list[object]]:
    """Dealt out like cards, so that every part gets its share of the long ones."""
    return [list(items[start::parts]) for start in range(min(parts, len(items)))]


@contextmanager
def _started(module: str, count: int) -> Iterator[list[_Worker]]:
    workers: list[_Worker] = []
    try:
        for _ in range(count):
            workers.append(_start(module))
        yield workers
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.wait()
            worker.errors.close()


def _start(module: str) -> _Worker:
    errors = tempfile.TemporaryFile("w+", errors="replace")  # noqa: SIM115 - closed by _started
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=_ROOT,
        env={**os.environ, **thread_environment(1)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        errors="replace",
        # Ctrl-C reaches only us; we end the workers ourselves.
        start_new_session=True,
    )
    return _Worker(process, errors)


def _converse(worker: _Worker, job: Mapping[str, object], answers: _Answers) -> None:
    process = worker.process
    assert process.stdin is not None  # noqa: S101 - for the type checker
    assert process.stdout is not None  # noqa: S101
    try:
        process.stdin.write(json.dumps(job))
        process.stdin.close()
    except BrokenPipeError:
        pass  # It has ended already; its exit code says why.
    for line in process.stdout:
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict):
            answers.put(answer)
    process.wait()
    answers.put(worker)


def _require_success(worker: _Worker) -> None:
    code = worker.process.returncode
    if code == ExitCode.DONE:
        return
    worker.errors.seek(0)
    words = worker.errors.read().strip()[-_SHOWN_ERROR_CHARACTERS:] or "it said nothing"
    if code == ExitCode.CONFIGURATION:
        raise ConfigError(words.splitlines()[-1])
    raise MarioError(f"a worker ended with exit code {code}: {words}")
