"""Does a recorded clear reach the flag? `python launch/verify.py TRACE|RUN` plays it again."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.cli import Program, abandon_stdout, command_words, parse_args, refuse
from common.config import CoreName
from common.errors import ConfigError, ExitCode, MarioError, TraceInvalid
from common.run_paths import RunPaths
from common.trace_log import read_trace_log
from common.traces import Trace, read_trace, trace_fields
from launch.workers import run_workers, split, with_progress

PROGRAM = Program(
    name="python launch/verify.py",
    description="""Play recorded clears again on a clean emulator; compare the memory at the flag.

Examples:
  python launch/verify.py runs/first
  python launch/verify.py runs/first/traces/actor-0.jsonl --newest 20
  python launch/verify.py clear.json --core nes_py

Exit codes: 0 all reach the flag, 1 some do not, 2 wrong settings or no trace.""",
)
NOT_ALL = 1
SHOWN_PROBLEMS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyArgs:
    """Which traces, and on what."""

    traces: str = ""
    """A trace, a file or folder of traces, or the folder of a run; as the first word or a flag."""
    core: CoreName = "auto"
    """Emulator core; nes_py is the reference, native plays the same game many times faster."""
    newest: int = 0
    """Only this many of each file, its newest; 0 means all."""
    processes: int = 0
    """Processes that play at the same time; 0 means one per CPU core."""

    def __post_init__(self) -> None:
        for name in ("newest", "processes"):
            if getattr(self, name) < 0:
                raise ConfigError(f"--{name} must be at least 0, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A trace, or what is wrong with its record, and where it was."""

    where: str
    trace: Trace | None
    problem: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--traces")
    try:
        args = parse_args(PROGRAM, words, VerifyArgs())
        found = find_traces(args.traces, args.newest)
        problems = verify(found, args)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        sys.stderr.write("stopped\n")
        return int(ExitCode.INTERRUPTED)
    try:
        show(found, problems)
    except BrokenPipeError:
        abandon_stdout()
    return NOT_ALL if problems else int(ExitCode.DONE)


def show(found: Sequence[Found], problems: Sequence[str]) -> None:
    for problem in problems[:SHOWN_PROBLEMS]:
        print(problem)
    if len(problems) > SHOWN_PROBLEMS:
        print(f"... {len(problems) - SHOWN_PROBLEMS} more")
    stages = sorted({one.trace.stage for one in found if one.trace is not None})
    good = len(found) - len(problems)
    print(f"{good} of {len(found)} traces reach the flag ({', '.join(stages) or 'no stage'})")
    sys.stdout.flush()


def find_traces(place: str, newest: int) -> list[Found]:
    if not place:
        raise ConfigError("which traces? give a trace or a run, for example runs/default")
    path = Path(place)
    if not path.exists():
        raise ConfigError(f"{path} does not exist; give a trace, a folder of traces or a run")
    found = [one for file in trace_files(path) for one in _newest(_read(file), newest)]
    if path.is_file() and not any(one.trace for one in found):
        raise ConfigError(f"{path} is no trace; give a trace, a folder of traces or a run")
    if not found and not RunPaths(path).config.exists():
        raise ConfigError(f"{path} is neither a run nor a folder of traces")
    if not found:
        raise ConfigError(f"{path} holds no trace: no stage was cleared yet")
    return found


def trace_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    folder = path / "traces" if (path / "traces").is_dir() else path
    names = ("*.jsonl.1", "*.jsonl", "*.json")
    files = [file for name in names for file in sorted(folder.glob(name)) if file.is_file()]
    # In the folder of a run or a checkpoint there are other JSON files, too.
    return [file for file in files if folder.name == "traces" or _looks_like_traces(file)]


def is_trace_log(file: Path) -> bool:
    """Whether every line holds a trace, whatever the file is called."""
    if file.suffix != ".json":
        return True
    with file.open("rb") as opened:
        try:
            first = json.loads(opened.readline())
        except (ValueError, RecursionError):
            return False
    return isinstance(first, dict) and "trace" in first


def _looks_like_traces(file: Path) -> bool:
    with file.open("rb") as opened:
        return b'"warpzone trace"' in opened.read(4096)


def _read(file: Path) -> Iterator[Found]:
    if not is_trace_log(file):
        try:
            yield Found(where=str(file), trace=read_trace(file))
        except TraceInvalid as error:
            yield Found(where=str(file), trace=None, problem=str(error))
        return
    for number, item in enumerate(read_trace_log(file), start=1):
        where = f"{file}, trace {number}"
        if isinstance(item, TraceInvalid):
            yield Found(where=where, trace=None, problem=str(item))
        else:
            yield Found(where=where, trace=item)


def _newest(found: Iterator[Found], count: int) -> list[Found]:
    return list(found)[-count:] if count else list(found)


def verify(found: Sequence[Found], args: VerifyArgs) -> list[str]:
    """What is wrong, a line each, in the order of the traces."""
    problems = {number: one.problem for number, one in enumerate(found) if one.problem}
    numbered = [
        (number, trace_fields(one.trace))
        for number, one in enumerate(found)
        if one.trace is not None
    ]
    processes = args.processes or os.cpu_count() or 1
    jobs = [{"core": args.core, "traces": part} for part in split(numbered, processes)]
    answers = run_workers("actor.verification_worker", jobs)
    for answer in with_progress(answers, len(numbered), "traces"):
        number, problem = int(str(answer["number"])), str(answer["problem"])
        if problem:
            problems[number] = f"{found[number].where}: {problem}"
    return [problems[number] for number in sorted(problems)]


if __name__ == "__main__":
    sys.exit(main())
