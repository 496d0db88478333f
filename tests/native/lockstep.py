"""Proves that the native core plays as nes_py does: RAM of every frame, screen of every third."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from common.atomic_files import write_atomic
from common.cli import Program, parse_args, refuse
from common.errors import ConfigError, ExitCode
from tests.native.frame_play import FrameTask, Outcome, check, clear_tasks, share_out
from tests.native.recorded_clears import read_clears
from tests.native.task_pool import Crew, run_all

_DIFFERENT: Final = 1
_PROGRAM: Final = Program(
    name="tests.native.lockstep",
    description="""Play nes_py and the native core side by side and stop at the first difference.

The recorded clears, then random play on all 32 stages with star power, pipes and vines now and
then. Examples:
  python -m tests.native.lockstep --frames 50000
  python -m tests.native.lockstep --frames 1000000 --processes 2

Exit codes: 0 no difference, 1 a difference, 2 wrong settings.""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockstepArgs:
    frames: int = 1_000_000
    """Emulator frames of random play, with those of the start screens."""
    processes: int = 2
    """Processes that play at the same time."""
    report: Path = Path("runs/lockstep.json")
    """What was compared and what differed."""

    def __post_init__(self) -> None:
        if self.frames < 1:
            raise ConfigError(f"--frames must be at least 1, got {self.frames}")


def compare(tasks: Sequence[FrameTask], processes: int, console: Console) -> list[Outcome]:
    """What was played up to the first difference, which is then the last of the outcomes."""
    crew: Crew[FrameTask, Outcome] = Crew(
        work=check, describe=Outcome.line, processes=processes, unit="frames"
    )
    outcomes = []
    # The longest first, so that no process is alone with one at the end.
    for outcome in run_all(crew, sorted(tasks, key=lambda task: -task.frames), console):
        outcomes.append(outcome)
        if outcome.difference:
            break
    return outcomes


def write_report(path: Path, outcomes: Sequence[Outcome], seconds: float) -> None:
    last = outcomes[-1]
    record: dict[str, object] = {
        "frames": sum(outcome.frames for outcome in outcomes),
        "stages": sorted({outcome.task.stage for outcome in outcomes}),
        "seconds": round(seconds, 1),
        "difference": last.difference or None,
    }
    if last.difference:
        record |= {"stage": last.task.stage, "seed": last.task.seed, "policy": last.task.policy}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(record, indent=2).encode() + b"\n")


def main(argv: Sequence[str] | None = None) -> int:
    console = Console()
    started_s = time.monotonic()
    try:
        args = parse_args(_PROGRAM, sys.argv[1:] if argv is None else argv, LockstepArgs())
        tasks = [*clear_tasks(read_clears()), *share_out(args.frames)]
        outcomes = compare(tasks, args.processes, console)
    except ConfigError as error:
        return refuse(_PROGRAM, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    write_report(args.report, outcomes, time.monotonic() - started_s)
    played = sum(outcome.frames for outcome in outcomes)
    difference = outcomes[-1].difference
    verdict = f"they differ: {difference}" if difference else "no difference"
    console.print(f"{played:,} frames, {verdict}; report: {args.report}", soft_wrap=True)
    return _DIFFERENT if difference else int(ExitCode.DONE)


if __name__ == "__main__":
    sys.exit(main())
