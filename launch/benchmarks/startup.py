"""The benchmark `startup`: from the command line to playing, and `--help` of every command."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from common.errors import BenchmarkFailed
from common.jsonl import last_record
from launch.benchmarks.measure import Bench, Contender, Effort, Result, Row, figure, measure
from launch.benchmarks.runs import launched, number
from launch.benchmarks.scene import Scene

DEADLINE_S = 300.0
LAUNCH = Path(__file__).resolve().parents[1]
PROGRAMS = ("actor", "learner", "replay_server")
SIGNS = ("PROGRAM", "tyro.cli(")
"""One of them is in every script that has flags."""
QUICK_COMMANDS = (
    "python launch/local.py",
    "python launch/env_regression.py",
    "python -m actor",
)
BARE = {"pass": "pass", "'import torch'": "import torch"}
"""As a person would type them, and what Python is given."""
DEFAULT_CORE = "nes_py"
"""What `launch/local.py` plays on where nothing is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPlan:
    actors: int = 8
    rounds: int = 3
    help_rounds: int = 5
    cores: tuple[str, ...] = (DEFAULT_CORE,)
    """What the actors play on, in turn."""
    words: tuple[str, ...] = ()
    """Further flags of the run."""


def run(effort: Effort) -> Result:
    plan = StartPlan(
        actors=2 if effort.quick else 8,
        rounds=effort.turns(3, 1),
        help_rounds=effort.turns(5, 1),
        cores=choose_cores(effort),
    )
    commands = all_commands()
    asked = {name: commands[name] for name in QUICK_COMMANDS} if effort.quick else commands
    helps = measure(bench_help(asked), plan.help_rounds)
    return Result([*start_rows(plan), *helps.rows], helps.notes)


def choose_cores(effort: Effort) -> tuple[str, ...]:
    """The launcher's own where nothing is asked for, and the native one where there is time."""
    chosen = effort.core_name()
    if effort.core != "auto":
        return (chosen,)
    is_one = effort.quick or chosen == DEFAULT_CORE
    return (DEFAULT_CORE,) if is_one else (DEFAULT_CORE, chosen)


def start_rows(plan: StartPlan) -> list[Row]:
    starts: dict[str, list[Start]] = {core: [] for core in plan.cores}
    for _ in range(plan.rounds):
        for core, its_starts in starts.items():
            its_starts.append(_start_once(plan, core))
    return [row for core in starts for row in _rows_of(plan, core, starts[core])]


def _rows_of(plan: StartPlan, core: str, starts: Sequence[Start]) -> list[Row]:
    started = f"{core}: launch/local.py --actors {plan.actors} to"
    actors = [actor for start in starts for actor in start.actors]
    used = f"{core}: an actor's processor time until all play"
    return [
        figure(f"{started} the first stored block", [one.stored_s for one in starts], "s"),
        figure(f"{started} all of them playing", [one.playing_s for one in starts], "s"),
        figure(used, [one.cpu_s for one in actors], "s"),
        figure(f"{core}: an actor's memory", [float(one.rss_bytes) for one in actors], "byte"),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorCost:
    """What an actor process has used when all of them play."""

    cpu_s: float
    rss_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Seconds until the first block was stored, and until every actor had played."""

    stored_s: float
    playing_s: float
    actors: tuple[ActorCost, ...]


def _start_once(plan: StartPlan, core: str) -> Start:
    began_s = time.monotonic()
    words = ("--actors", str(plan.actors), "--core", core, "--metrics-interval-s", "0.5")
    peers = [f"actor-{index}" for index in range(plan.actors)]
    with launched([*words, *plan.words]) as scene:
        stored_s = playing_s = 0.0
        while not (stored_s and playing_s):
            scene.check()
            elapsed_s = time.monotonic() - began_s
            if elapsed_s > DEADLINE_S:
                raise BenchmarkFailed(f"not all of {plan.actors} actors play after {DEADLINE_S} s")
            if not stored_s and _told(scene, "replay_server-0", "replay_push_blocks_total"):
                stored_s = elapsed_s
            if not playing_s and all(_told(scene, peer, "progress") for peer in peers):
                playing_s = elapsed_s
            time.sleep(0.05)
        costs = tuple(_cost(int(_last(scene, peer, "pid"))) for peer in peers)
    return Start(stored_s=stored_s, playing_s=playing_s, actors=costs)


def _cost(pid: int) -> ActorCost:
    process = psutil.Process(pid)
    used = process.cpu_times()
    return ActorCost(cpu_s=used.user + used.system, rss_bytes=process.memory_info().rss)


def _told(scene: Scene, peer: str, name: str) -> bool:
    return _last(scene, peer, name) > 0


def _last(scene: Scene, peer: str, name: str) -> float:
    return number(last_record(scene.paths.process_heartbeat(peer)) or {}, name)


def all_commands() -> dict[str, list[str]]:
    """Every command that a person or the launcher starts, with its words."""
    scripts = [path for path in sorted(LAUNCH.glob("*.py")) if _has_flags(path)]
    return {
        **{f"python launch/{path.name}": [str(path)] for path in scripts},
        **{f"python -m {name}": ["-m", name] for name in PROGRAMS},
    }


def _has_flags(path: Path) -> bool:
    """Whether it is started by somebody who may ask for its help."""
    text = path.read_text(encoding="utf-8")
    return '__name__ == "__main__"' in text and any(sign in text for sign in SIGNS)


def bench_help(commands: dict[str, list[str]]) -> Bench:
    """The interpreter alone comes first: nothing can be faster; then what every actor imports."""
    words = {f"python -c {quoted}": ["-c", code] for quoted, code in BARE.items()}
    words |= {f"{name} --help": [*command, "--help"] for name, command in commands.items()}
    return Bench(
        contenders={
            name: Contender(work=partial(_run_quietly, command), unit="start")
            for name, command in words.items()
        }
    )


def _run_quietly(words: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    if result.returncode != 0:
        raise BenchmarkFailed(f"{' '.join(words)} ended with {result.returncode}: {result.stderr}")
