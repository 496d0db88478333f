"""Half an hour of training with a kill now and then: nothing may grow, nothing may slow down."""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

import psutil

from common.atomic_files import write_atomic
from common.cli import Program, parse_args, refuse
from common.errors import ConfigError, ExitCode
from common.jsonl import read_jsonl
from tests.processes import end, processes_mentioning, start, write_corridor

PROGRAM: Final = Program(
    name="tests.faults.soak",
    description="""Train on the corridor for a while, kill random processes, watch all of them.

Examples:
  python -m tests.faults.soak
  python -m tests.faults.soak --minutes 6 --kills 4 --report soak.json

Exit codes: 0 all promises hold, 1 one does not, 2 wrong settings.""",
)
BROKEN: Final = 1
LOOK_INTERVAL_S: Final = 5.0
WINDOW_SHARE: Final = 1 / 6
"""The first and the last part that are compared: five minutes of thirty."""
FLAT: Final = {"rss_mb": 8, "descriptors": 2, "threads": 0}
"""What must not grow, and by how much it may differ whatever its size."""
MAX_GROWTH: Final = 0.025
"""Between the two windows: one per cent in ten minutes of thirty."""
MIN_RATE_RATIO: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakArgs:
    minutes: float = 30.0
    """How long to train."""
    kills: int = 20
    """Processes to kill with SIGKILL, one at a time, at even distances."""
    actors: int = 3
    """Actor processes."""
    seed: int = 1
    """Which processes are killed."""
    report: str = ""
    """File for the figures as JSON."""

    def __post_init__(self) -> None:
        if not (self.minutes > 0 and self.kills >= 0 and self.actors > 0):
            raise ConfigError("--minutes and --actors must be above 0, --kills at least 0")


@dataclass(frozen=True, slots=True)
class Look:
    """One process at one moment."""

    when_s: float
    role: str
    pid: int
    rss_mb: float
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True)
class Promise:
    what: str
    measured: str
    holds: bool


def roles_of(run: Path) -> list[tuple[str, psutil.Process]]:
    """The processes of the run with their modules; the launcher is not among them."""
    found = []
    for process in processes_mentioning(str(run)):
        words = process.cmdline()
        if "-m" in words:
            found.append((words[words.index("-m") + 1], process))
    return found


def look(run: Path, began_s: float) -> Iterator[Look]:
    for role, process in roles_of(run):
        try:
            with process.oneshot():
                yield Look(
                    time.monotonic() - began_s,
                    role,
                    process.pid,
                    process.memory_info().rss / 2**20,
                    process.num_fds(),
                    process.num_threads(),
                )
        except psutil.Error:
            continue


def soak(run: Path, args: SoakArgs) -> list[Look]:
    """Watch and kill; the launcher is running."""
    rng = random.Random(args.seed)
    began_s, length_s = time.monotonic(), 60 * args.minutes
    distance_s = length_s / (args.kills + 1)
    looks: list[Look] = []
    killed = 0
    while (now_s := time.monotonic() - began_s) < length_s:
        looks += look(run, began_s)
        if killed < args.kills and now_s > (killed + 1) * distance_s:
            role, process = rng.choice(roles_of(run))
            process.kill()
            killed += 1
            say(f"{now_s:6.0f} s  killed {role} ({killed} of {args.kills})")
        time.sleep(LOOK_INTERVAL_S)
    return looks


def judge(
    looks: Sequence[Look], steps: Sequence[tuple[float, int]], args: SoakArgs
) -> list[Promise]:
    window_s = 60 * args.minutes * WINDOW_SHARE
    promises = []
    for role in sorted({one.role for one in looks}):
        own = [one for one in looks if one.role == role]
        # The first window is for growing up: buffers fill, libraries load.
        early = [one for one in own if window_s <= one.when_s < 2 * window_s]
        late = [one for one in own if one.when_s >= 60 * args.minutes - window_s]
        promises += [
            _flat(role, name, early, late) for name in ("rss_mb", "descriptors", "threads")
        ]
    return [*promises, _steady(steps, window_s)]


def _flat(role: str, name: str, early: Sequence[Look], late: Sequence[Look]) -> Promise:
    if not early or not late:
        return Promise(f"{role}: {name} flat", "not seen", holds=False)
    before, after = (max(getattr(one, name) for one in part) for part in (early, late))
    allowed = before + max(FLAT[name], MAX_GROWTH * before)
    return Promise(f"{role}: {name} flat", f"{before:.0f} to {after:.0f}", after <= allowed)


def _steady(steps: Sequence[tuple[float, int]], window_s: float) -> Promise:
    """Agent steps per second in the last window against the first after the start."""
    first, last = steps[0][0], steps[-1][0]
    early = _median_rate([one for one in steps if window_s <= one[0] - first < 2 * window_s])
    late = _median_rate([one for one in steps if one[0] >= last - window_s])
    ratio = late / early if early else 0.0
    measured = f"{early:.0f} to {late:.0f} agent steps/s, {ratio:.0%}"
    return Promise("rate of the last part", measured, ratio >= MIN_RATE_RATIO)


def _median_rate(steps: Sequence[tuple[float, int]]) -> float:
    """Median over the lines, so that a restart in one part does not decide."""
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(steps) if b[0] > a[0]]
    return statistics.median(rates) if rates else 0.0


def main(argv: Sequence[str] | None = None) -> int:
    try:
        args = parse_args(PROGRAM, list(sys.argv[1:] if argv is None else argv), SoakArgs())
    except ConfigError as error:
        return refuse(PROGRAM, error)
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        preset = write_corridor(folder)
        words = ("--preset", str(preset), "--runs-dir", name, "--run", "soak", "--plain")
        launcher = start("launch/local.py", *words, "--actors", str(args.actors))
        try:
            looks = soak(folder / "soak", args)
            is_alive = launcher.poll() is None
        finally:
            end(launcher)
        lines = read_jsonl(folder / "soak" / "metrics.jsonl")
        steps = [(float(str(line["time"])), int(str(line["global_step"]))) for line in lines]
    promises = [*judge(looks, steps, args), Promise("the run goes on", str(is_alive), is_alive)]
    show(promises, args)
    return int(ExitCode.DONE) if all(one.holds for one in promises) else BROKEN


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show(promises: Sequence[Promise], args: SoakArgs) -> None:
    say("| promise | measured | verdict |\n|---|---|---|")
    for one in promises:
        say(f"| {one.what} | {one.measured} | {'holds' if one.holds else 'BROKEN'} |")
    if args.report:
        record = {"settings": asdict(args), "promises": [asdict(one) for one in promises]}
        write_atomic(Path(args.report), json.dumps(record, indent=2).encode())


if __name__ == "__main__":
    sys.exit(main())
