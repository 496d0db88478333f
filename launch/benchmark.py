"""Measure this machine: `python launch/benchmark.py env`. Figures are ratios within one run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from rich.console import Console

from common.cli import Program, command_words, parse_args, refuse
from common.config import CoreName
from common.config_checks import require_between
from common.config_play import MAX_ACTORS
from common.devices import limit_torch_threads, thread_environment
from common.errors import BenchmarkFailed, ConfigError, ExitCode, MarioError
from launch.benchmarks.measure import Effort, Result
from launch.benchmarks.outputs import require_folder, require_picture
from launch.benchmarks.report import Findings, machine_facts, write_csv

BENCHES = {
    "env": "emulator cores and environments against raw nes_py frames",
    "per": "prioritised sampling out of a million items against cpprb",
    "replay": "a replay server over real sockets against raw ZeroMQ and memcpy",
    "weights": "from publishing weights to their use by eight actors",
    "learner": "an update against a plain one; gaps between updates",
    "actor": "a whole actor on one core",
    "pipeline": "where the time of a whole run goes; against Stable-Baselines3",
    "overlap": "lockstep against parallel processes, over actors and block sizes",
    "startup": "from the command line to the first block; --help of every command",
    "watching": "what a control room and its viewers cost a run",
    "cluster": "a run under launch/cluster.py against launch/local.py",
    "swarm": "how many actors a replay server holds; a storm of reconnects (7 min; --quick 1)",
}
FAILED = 1
BY_THEMSELVES = ("watching", "cluster", "swarm")
"""Minutes each, and about more than one machine or somebody who looks: not part of `all`."""
PROGRAM = Program(
    name="python launch/benchmark.py",
    description=f"""Measure parts of the system against a reference, interleaved in one run.

Benchmarks, the first word of the command line:
{chr(10).join(f"  {name:9} {about}" for name, about in BENCHES.items())}
  all       one after the other, but for {", ".join(BY_THEMSELVES)}

References that are not installed are named with what installs them.

Examples:
  python launch/benchmark.py env
  python launch/benchmark.py all --quick --json
  python launch/benchmark.py per --csv results
  python launch/benchmark.py pipeline --core nes_py --picture pipeline.png
  python launch/benchmark.py swarm --actors 1000 --rate 15
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchArgs:
    """What to measure and how long."""

    name: str = "all"
    """Which benchmark; the first word of the command line."""
    rounds: int = 0
    """Turns of each contender; 0 means the benchmark's own number."""
    quick: bool = False
    """One of each kind, fewer turns and shorter runs: about two minutes for all on two cores."""
    json: bool = False
    """Print JSON for programs: one document at the end, also when it is stopped before."""
    csv: str = ""
    """Folder for bench_<name>_<time>.csv; overlap writes its file here in any case."""
    core: CoreName = "auto"
    """The emulator of whole runs; auto is native where it was built, pipeline takes both then."""
    picture: str = ""
    """Where pipeline draws its shares of time, .png or .svg (needs the extra plot)."""
    actors: int = 0
    """Most actors of swarm; 0 means 1,000, or 50 with --quick."""
    rate: float = 0.0
    """Agent steps per second of each actor of swarm; 0 means 15, or 60 with --quick."""

    def __post_init__(self) -> None:
        require_between(self, 0, MAX_ACTORS, "actors")
        require_between(self, 0, 10_000, "rate")
        if self.rounds < 0:
            raise ConfigError(f"--rounds must be at least 0, got {self.rounds}")


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--name")
    try:
        args = parse_args(PROGRAM, words, BenchArgs())
        names, machine = chosen(args), machine_facts()
        check_outputs(names, args)
    except MarioError as error:
        return refuse(PROGRAM, error)
    findings = Findings(names, machine, Console(), as_document=args.json)
    try:
        with findings:
            for name, result in run_all(names, args):
                findings.add(name, result)
                if result.rows and (args.csv or result.lines):
                    path = write_csv(Path(args.csv or "."), name, result, machine)
                    sys.stderr.write(f"[benchmark] wrote {path}\n")
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        sys.stderr.write(f"[benchmark] stopped; {findings.missing()}\n")
        return int(ExitCode.INTERRUPTED)
    return FAILED if findings.failed else 0


def check_outputs(names: Sequence[str], args: BenchArgs) -> None:
    """Refuse at once what could not be written at the end."""
    if args.picture:
        require_picture(Path(args.picture))
    if args.csv or "overlap" in names:
        require_folder(Path(args.csv or "."))


def chosen(args: BenchArgs) -> list[str]:
    if args.name != "all" and args.name not in BENCHES:
        raise ConfigError(f"benchmark must be one of {', '.join(BENCHES)}, all; got {args.name!r}")
    if args.picture and args.name not in ("pipeline", "all"):
        raise ConfigError(f"--picture belongs to pipeline, not to {args.name}")
    if args.name != "all":
        return [args.name]
    return [name for name in BENCHES if name not in BY_THEMSELVES]


def run_all(names: Sequence[str], args: BenchArgs) -> Iterator[tuple[str, Result]]:
    effort = Effort(
        rounds=args.rounds,
        quick=args.quick,
        core=args.core,
        picture=args.picture,
        actors=args.actors,
        rate=args.rate,
    )
    load_torch()
    for name in names:
        # By name and late, because `--help` should not wait for any of them.
        module = import_module(f"launch.benchmarks.{name}")
        try:
            yield name, module.run(effort)
        except BenchmarkFailed as error:
            if len(names) == 1:
                raise
            # The others are worth their time all the same.
            yield name, Result([], (f"{name} failed: {error}",), failed=True)


def load_torch() -> None:
    """Once in a process: one core per contender, as an actor has it, and threads that sleep.

    OpenMP reads the environment here and never again; what is started later has its own.
    """
    before = dict(os.environ)
    os.environ.update(thread_environment(1))
    limit_torch_threads(1)
    os.environ.clear()
    os.environ.update(before)


if __name__ == "__main__":
    # Told to end: what was started must be stopped, as after Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(int(ExitCode.TERMINATED)))
    sys.exit(main())
