"""Half an hour of training with a kill now and then: nothing may grow, nothing may slow down."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from common.atomic_files import write_atomic
from common.cli import Program, parse_args, refuse
from common.errors import ConfigError, ExitCode
from tests.faults.soak_rates import SETTLE_S, Part, Steadiness, part_between, steps_of
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
END_DEADLINE_S: Final = 30.0
OLD: Final = "soak"


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
        if 60 * self.minutes * WINDOW_SHARE < SETTLE_S:
            least = SETTLE_S / WINDOW_SHARE / 60
            raise ConfigError(f"--minutes must be at least {least:g}, got {self.minutes:g}")


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
    """The processes of the run with their modules."""
    found = []
    for process in processes_mentioning(str(run)):
        words = process.cmdline()
        if "-m" in words:
            found.append((words[words.index("-m") + 1], process))
    return found


def launcher_of(folder: Path, name: str) -> Iterator[tuple[str, psutil.Process]]:
    """It alone lives from the first to the last minute."""
    for process in processes_mentioning(str(folder)):
        words = process.cmdline()
        if "launch/local.py" in words and words[words.index("--run") + 1] == name:
            yield "launcher", process


def look(run: Path, began_s: float) -> Iterator[Look]:
    for role, process in [*roles_of(run), *launcher_of(run.parent, run.name)]:
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


@contextmanager
def training(folder: Path, name: str, actors: int) -> Iterator[subprocess.Popen[str]]:
    """A run of its own; gone, with all that it started, at the end."""
    words = ("--preset", str(write_corridor(folder)), "--runs-dir", str(folder), "--run", name)
    launcher = start("launch/local.py", *words, "--plain", "--actors", str(actors))
    try:
        yield launcher
    finally:
        end(launcher)
        # Those that it leaves save and end by themselves, in the folder that we remove.
        run = str(folder / name)
        wait_until("all gone", lambda: not processes_mentioning(run), END_DEADLINE_S)


class Watch:
    """The old run: looked at all the time, and now and then one of its processes is killed."""

    def __init__(self, run: Path, args: SoakArgs) -> None:
        self.looks: list[Look] = []
        self._run = run
        self._kills = args.kills
        self._distance_s = 60 * args.minutes / (args.kills + 1)
        self._killed = 0
        self._rng = random.Random(args.seed)
        self._began_s = time.monotonic()

    def until(self, moment_s: float) -> None:
        while (now_s := time.monotonic() - self._began_s) < moment_s:
            self.looks += look(self._run, self._began_s)
            if self._killed < self._kills and now_s > (self._killed + 1) * self._distance_s:
                self._kill(now_s)
            time.sleep(LOOK_INTERVAL_S)

    def _kill(self, now_s: float) -> None:
        role, process = self._rng.choice(roles_of(self._run))
        process.kill()
        self._killed += 1
        say(f"{now_s:6.0f} s  killed {role} ({self._killed} of {self._kills})")


def soak(folder: Path, args: SoakArgs) -> tuple[Watch, list[Part], bool]:
    """The old run with a fresh one beside it in two parts; whether it still ran at the end."""
    length_s = 60 * args.minutes
    part_s = length_s * WINDOW_SHARE
    parts = []
    with training(folder, OLD, args.actors) as launcher:
        watch = Watch(folder / OLD, args)
        for ends_s in (2 * part_s, length_s):
            watch.until(ends_s - part_s - SETTLE_S)
            fresh = f"fresh-{ends_s:.0f}"
            with training(folder, fresh, args.actors):
                watch.until(ends_s - part_s)
                say(f"{ends_s - part_s:6.0f} s  a fresh run beside it for {part_s:.0f} s")
                began = time.time()
                watch.until(ends_s)
                ended, is_alive = time.time(), launcher.poll() is None
            runs = (steps_of(folder / name) for name in (OLD, fresh))
            parts.append(part_between(began, ended, *runs))
    return watch, parts, is_alive


def judge(looks: Sequence[Look], parts: Sequence[Part], args: SoakArgs) -> list[Promise]:
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
    steady = Steadiness(*parts)
    return [*promises, Promise("rate of the last part", str(steady), steady.holds)]


def _flat(role: str, name: str, early: Sequence[Look], late: Sequence[Look]) -> Promise:
    if not early or not late:
        return Promise(f"{role}: {name} flat", "not seen", holds=False)
    before, after = (max(getattr(one, name) for one in part) for part in (early, late))
    allowed = before + max(FLAT[name], MAX_GROWTH * before)
    return Promise(f"{role}: {name} flat", f"{before:.0f} to {after:.0f}", after <= allowed)


def main(argv: Sequence[str] | None = None) -> int:
    try:
        args = parse_args(PROGRAM, list(sys.argv[1:] if argv is None else argv), SoakArgs())
    except ConfigError as error:
        return refuse(PROGRAM, error)
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        watch, parts, is_alive = soak(Path(name), args)
    goes_on = Promise("the run goes on", str(is_alive), is_alive)
    promises = [*judge(watch.looks, parts, args), goes_on]
    show(promises)
    keep(args.report, promises, parts)
    return int(ExitCode.DONE) if all(one.holds for one in promises) else BROKEN


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def show(promises: Sequence[Promise]) -> None:
    say("| promise | measured | verdict |\n|---|---|---|")
    for one in promises:
        say(f"| {one.what} | {one.measured} | {'holds' if one.holds else 'BROKEN'} |")


def keep(report: str, promises: Sequence[Promise], parts: Sequence[Part]) -> None:
    """Also what the rate was made from, for whoever doubts it."""
    if report:
        record = {
            "promises": [asdict(one) for one in promises],
            "parts": [asdict(one) for one in parts],
        }
        write_atomic(Path(report), json.dumps(record, indent=2).encode())


if __name__ == "__main__":
    sys.exit(main())
