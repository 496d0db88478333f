"""Searches for a clear of every stage on the native core and writes what it finds as traces."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from actor.env.native_core import NativeCore
from actor.env.repetition import repeat
from common.cli import Program, parse_args, refuse
from common.errors import ConfigError, ExitCode
from common.game import STAGES, parse_stage
from common.traces import Trace, write_trace
from tests.native.clear_search import ClearSearch
from tests.native.recorded_clears import FOLDER

_NOT_ALL: Final = 1
_PROGRAM: Final = Program(
    name="tests.native.find_clears",
    description="""Find clears by remembering places and exploring from them.

Examples:
  python -m tests.native.find_clears                            all stages, 40 minutes
  python -m tests.native.find_clears --stages 1-1 8-4 --minutes 10

Exit codes: 0 all found, 1 some not, 2 wrong settings.""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchArgs:
    stages: tuple[str, ...] = STAGES
    """The stages to clear."""
    minutes: float = 40.0
    """Time for all of them together."""
    slice_s: float = 20.0
    """Time for one stage before the next one that is not cleared has its turn."""
    seed: int = 0
    """Another seed finds other ways."""
    output: Path = FOLDER
    """Directory for the traces, one file per stage."""

    def __post_init__(self) -> None:
        for stage in self.stages:
            parse_stage(stage)
        if self.minutes <= 0 or self.slice_s <= 0:
            raise ConfigError("--minutes and --slice-s must be more than 0")


def take_turns(searches: Sequence[ClearSearch], minutes: float, slice_s: float) -> Iterator[Trace]:
    """Traces as they are found, until all are or the time is over."""
    waiting = list(searches)
    ends_s = time.monotonic() + minutes * 60
    while waiting and time.monotonic() < ends_s:
        search = waiting.pop(0)
        trace = explore_until(search, min(ends_s, time.monotonic() + slice_s))
        if trace is None:
            waiting.append(search)
        else:
            yield trace


def explore_until(search: ClearSearch, ends_s: float) -> Trace | None:
    while time.monotonic() < ends_s:
        if (trace := search.explore()) is not None:
            return trace
    return None


def is_repeatable(trace: Trace) -> bool:
    """On a fresh console, without the save states that the search used."""
    again = repeat(trace, NativeCore())
    return again.has_flag and again.ram_sha256 == trace.final_ram_sha256


def main(argv: Sequence[str] | None = None) -> int:
    console = Console()
    try:
        args = parse_args(_PROGRAM, sys.argv[1:] if argv is None else argv, SearchArgs())
    except ConfigError as error:
        return refuse(_PROGRAM, error)
    args.output.mkdir(parents=True, exist_ok=True)
    missing = list(args.stages)
    searches = [ClearSearch(stage, args.seed) for stage in args.stages]
    for trace in take_turns(searches, args.minutes, args.slice_s):
        if not is_repeatable(trace):
            console.print(f"{trace.stage}: found a clear that cannot be repeated", style="red")
            continue
        write_trace(args.output / f"{trace.stage}.json", trace)
        missing.remove(trace.stage)
        console.print(f"{trace.stage}: {len(trace.actions)} agent steps", highlight=False)
    console.print(f"not found: {', '.join(missing) or 'none'}", highlight=False)
    return _NOT_ALL if missing else int(ExitCode.DONE)


if __name__ == "__main__":
    sys.exit(main())
