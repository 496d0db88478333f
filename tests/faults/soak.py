"""Half an hour of training with a kill now and then: nothing may grow, nothing may slow down."""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
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
from tests.waiting import wait_until

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
END_DEADLINE_S: Final = 30.0
BIN_S: Final = 20.0
"""Rates are those of bins: single lines jump by the size of a block."""
PACE_LOOPS: Final = 400_000
"""Of a loop that is timed at every look: some ten milliseconds. It tells how fast the machine is at
the time, which others may share."""


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
class Pace:
    """How fast the machine was at one moment, in loops per second of processor time."""

    time_s: float
    """By the wall clock, as in metrics.jsonl."""
    loops_per_s: float


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


def measure_pace() -> Pace:
    began_s = time.thread_time()
    for _ in range(PACE_LOOPS):
        pass
    return Pace(time.time(), PACE_LOOPS / (time.thread_time() - began_s))


def soak(run: Path, args: SoakArgs) -> tuple[list[Look], list[Pace]]:
    """Watch and kill; the launcher is running."""
    rng = random.Random(args.seed)
    began_s, length_s = time.monotonic(), 60 * args.minutes
    distance_s = length_s / (args.kills + 1)
    looks: list[Look] = []
    paces: list[Pace] = []
    killed = 0
    while (now_s := time.monotonic() - began_s) < length_s:
        looks += look(run, began_s)
        paces.append(measure_pace())
        if killed < args.kills and now_s > (killed + 1) * distance_s:
            role, process = rng.choice(roles_of(run))
            process.kill()
            killed += 1
            say(f"{now_s:6.0f} s  killed {role} ({killed} of {args.kills})")
        time.sleep(LOOK_INTERVAL_S)
    return looks, paces


def judge(
    looks: Sequence[Look],
    paces: Sequence[Pace],
    steps: Sequence[tuple[float, int]],
    args: SoakArgs,
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
    return [*promises, _steady(steps, paces, window_s)]


def _flat(role: str, name: str, early: Sequence[Look], late: Sequence[Look]) -> Promise:
    if not early or not late:
        return Promise(f"{role}: {name} flat", "not seen", holds=False)
    before, after = (max(getattr(one, name) for one in part) for part in (early, late))
    allowed = before + max(FLAT[name], MAX_GROWTH * before)
    return Promise(f"{role}: {name} flat", f"{before:.0f} to {after:.0f}", after <= allowed)


def _steady(steps: Sequence[tuple[float, int]], paces: Sequence[Pace], window_s: float) -> Promise:
    """Agent steps per second in the last window against the first after the start.

    Both in proportion to the pace of the machine: what others take away is not ours to answer for.
    """
    first, last = steps[0][0], steps[-1][0]
    parts = ((first + window_s, first + 2 * window_s), (last - window_s, last + 1))
    early, late = (_median_rate([s for s in steps if a <= s[0] < b]) for a, b in parts)
    slow, fast = (_median_pace([p for p in paces if a <= p.time_s < b]) for a, b in parts)
    ratio, pace = (late / early if early else 0.0), (fast / slow if slow else 0.0)
    relative = ratio / pace if pace else 0.0
    measured = (
        f"{early:.0f} to {late:.0f} agent steps/s, {ratio:.0%} at {pace:.0%} of the machine's "
        f"pace: {relative:.0%}"
    )
    return Promise("rate of the last part", measured, relative >= MIN_RATE_RATIO)


def _median_pace(paces: Sequence[Pace]) -> float:
    return statistics.median(one.loops_per_s for one in paces) if paces else 0.0


def _median_rate(steps: Sequence[tuple[float, int]]) -> float:
    """Median over bins, so that a restart does not decide, nor the moment at which blocks come."""
    grown: dict[int, float] = defaultdict(float)
    passed_s: dict[int, float] = defaultdict(float)
    for before, after in pairwise(steps):
        place = int((after[0] - steps[0][0]) // BIN_S)
        # A learner that went back to its checkpoint counts from there.
        grown[place] += max(after[1] - before[1], 0)
        passed_s[place] += after[0] - before[0]
    rates = [grown[place] / passed_s[place] for place in grown if passed_s[place] > 0]
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
            looks, paces = soak(folder / "soak", args)
            is_alive = launcher.poll() is None
        finally:
            end(launcher)
            # Those that it leaves save and end by themselves, in the folder that we remove.
            wait_until("all gone", lambda: not processes_mentioning(name), END_DEADLINE_S)
        lines = read_jsonl(folder / "soak" / "metrics.jsonl")
        steps = [(float(str(line["time"])), int(str(line["global_step"]))) for line in lines]
    goes_on = Promise("the run goes on", str(is_alive), is_alive)
    promises = [*judge(looks, paces, steps, args), goes_on]
    show(promises)
    keep(args.report, promises, paces, steps)
    return int(ExitCode.DONE) if all(one.holds for one in promises) else BROKEN


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show(promises: Sequence[Promise]) -> None:
    say("| promise | measured | verdict |\n|---|---|---|")
    for one in promises:
        say(f"| {one.what} | {one.measured} | {'holds' if one.holds else 'BROKEN'} |")


def keep(
    report: str,
    promises: Sequence[Promise],
    paces: Sequence[Pace],
    steps: Sequence[tuple[float, int]],
) -> None:
    """Also what the rate was made from, for whoever doubts it."""
    if report:
        record = {
            "promises": [asdict(one) for one in promises],
            "paces": [asdict(one) for one in paces],
            "agent_steps": steps,
        }
        write_atomic(Path(report), json.dumps(record, indent=2).encode())


if __name__ == "__main__":
    sys.exit(main())
