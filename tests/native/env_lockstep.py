"""Proves that `MarioEnv` is the same on nes_py and on the native core, agent step by agent step."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console

from common.cli import Program, parse_args, refuse
from common.errors import ConfigError, ExitCode
from common.game import STAGES
from common.traces import Trace
from tests.native.env_journal import DIGEST_BYTES, EnvTask, Journal, Moment, play
from tests.native.recorded_clears import read_clears
from tests.native.task_pool import Crew, run_all

TASK_AGENT_STEPS: Final = 2_000
_CLEAR_SEEDS: Final = 10_000
_DIFFERENT: Final = 1
_PROGRAM: Final = Program(
    name="tests.native.env_lockstep",
    description="""Compare MarioEnv on both cores: observation, reward, flags and info.

nes_py's half is slow, so it is recorded once and kept; finished tasks are not repeated. Examples:
  python -m tests.native.env_lockstep --agent-steps 20000
  python -m tests.native.env_lockstep --agent-steps 1000000 --journal ~/journal

Exit codes: 0 no difference, 1 a difference, 2 wrong settings.""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockstepArgs:
    agent_steps: int = 1_000_000
    """Agent steps of random play over all stages; those along recorded clears come on top."""
    processes: int = 2
    """Processes that play at the same time."""
    journal: Path = Path("env_journal")
    """Directory for what nes_py gave; about 10 bytes per agent step."""

    def __post_init__(self) -> None:
        if self.agent_steps < 1:
            raise ConfigError(f"--agent-steps must be at least 1, got {self.agent_steps}")
        try:
            self.journal.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"--journal {self.journal}: {error.strerror}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    name: str
    difference: str
    """Empty when the cores agreed."""


def random_tasks(agent_steps: int, task_agent_steps: int = TASK_AGENT_STEPS) -> list[EnvTask]:
    """Every stage in turn, first played to the right, then aimlessly, and so on."""
    tasks = []
    for index in range(-(-agent_steps // task_agent_steps)):
        is_aimless = index // len(STAGES) % 2 == 1
        tasks.append(
            EnvTask(
                stage=STAGES[index % len(STAGES)],
                seed=index,
                policy="uniform" if is_aimless else "right",
                agent_steps=min(task_agent_steps, agent_steps - index * task_agent_steps),
            )
        )
    return tasks


def clear_tasks(clears: Sequence[Trace]) -> list[EnvTask]:
    """Each clear again and again, with random play after some point of it."""
    return [
        EnvTask(
            stage=clear.stage,
            seed=_CLEAR_SEEDS + index,
            policy="right",
            agent_steps=TASK_AGENT_STEPS,
            script=clear.actions,
        )
        for index, clear in enumerate(clears)
    ]


def check(task: EnvTask, folder: Path) -> Outcome:
    """Record what is not recorded, then play the native half."""
    journal = Journal(folder)
    digests = journal.read(task) or journal.record(task)
    index = first_difference(digests, play(task, "native"))
    return Outcome(name=task.name, difference="" if index is None else explain(task, index))


def first_difference(digests: bytes, moments: Iterator[Moment]) -> int | None:
    """The first moment, counted with resets, that is not the recorded one."""
    recorded = (
        digests[start : start + DIGEST_BYTES] for start in range(0, len(digests), DIGEST_BYTES)
    )
    played = (moment.digest() for moment in moments)
    for index, (ours, theirs) in enumerate(zip_longest(played, recorded)):
        if ours != theirs:
            return index
    return None


def explain(task: EnvTask, index: int) -> str:
    """Play both live up to the first difference and say what it is."""
    for live, (theirs, ours) in enumerate(zip_longest(play(task, "nes_py"), play(task, "native"))):
        if theirs is None or ours is None:
            return f"{task.name}: one core gave {live} moments, the other more"
        if parts := differing_parts(theirs, ours):
            return f"{task.name}, moment {live}: {'; '.join(parts)}"
    return (
        f"{task.name}, moment {index}: the journal is not what nes_py gives today, but both cores "
        "agree live; was it recorded with another environment? Then delete it."
    )


def differing_parts(theirs: Moment, ours: Moment) -> list[str]:
    """Each part that differs, as `what: nes_py's value, native value`."""
    parts = []
    if not np.array_equal(theirs.observation, ours.observation):
        places = np.argwhere(theirs.observation != ours.observation)
        first = tuple(int(number) for number in places[0])
        values = f"{theirs.observation[first]}, {ours.observation[first]}"
        parts.append(f"{len(places)} pixels, the first at {first}: {values}")
    for name in ("reward", "is_terminated", "is_truncated"):
        if getattr(theirs, name) != getattr(ours, name):
            parts.append(f"{name}: {getattr(theirs, name)}, {getattr(ours, name)}")
    for key in sorted(theirs.info.keys() | ours.info.keys()):
        values = f"{theirs.info.get(key)!r}, {ours.info.get(key)!r}"
        if repr(theirs.info.get(key)) != repr(ours.info.get(key)):
            parts.append(f"info[{key!r}]: {values}")
    return parts


def compare(tasks: Sequence[EnvTask], args: LockstepArgs, console: Console) -> list[str]:
    """The differences of all tasks."""
    crew: Crew[EnvTask, Outcome] = Crew(
        work=partial(check, folder=args.journal),
        describe=lambda outcome: outcome.difference or f"{outcome.name}: equal",
        processes=args.processes,
        unit="agent steps",
    )
    return [outcome.difference for outcome in run_all(crew, tasks, console) if outcome.difference]


def main(argv: Sequence[str] | None = None) -> int:
    console = Console()
    try:
        args = parse_args(_PROGRAM, sys.argv[1:] if argv is None else argv, LockstepArgs())
        tasks = [*random_tasks(args.agent_steps), *clear_tasks(read_clears())]
        differences = compare(tasks, args, console)
    except ConfigError as error:
        return refuse(_PROGRAM, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    for difference in differences:
        console.print(difference, style="red", markup=False, soft_wrap=True)
    agent_steps = sum(task.agent_steps for task in tasks)
    console.print(f"{agent_steps:,} agent steps: {len(differences)} tasks differ")
    return _DIFFERENT if differences else int(ExitCode.DONE)


if __name__ == "__main__":
    sys.exit(main())
