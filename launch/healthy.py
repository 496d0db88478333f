"""Whether a process of a run is alive: `python launch/healthy.py actor-3 --run-dir RUN_FOLDER`.

For probes of containers and service managers, on the host of that process. A heartbeat is written
from the working loop, so a process that hangs is not healthy.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.cli import Program, command_words, parse_args, refuse
from common.config_checks import require_positive, require_wait
from common.errors import ConfigError, ExitCode, MarioError
from common.ids import PEER_ID_PATTERN
from common.jsonl import last_record
from common.run_paths import RunPaths

PROGRAM = Program(
    name="python launch/healthy.py",
    description="""Exit code 0 when the newest heartbeat of a process is recent, otherwise 75.

Examples:
  python launch/healthy.py actor-3 --run-dir /runs/far
  python launch/healthy.py learner-0 --run-dir /runs/far --max-age-s 120
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthyArgs:
    """Whose heartbeat, and how old it may be."""

    peer: str = ""
    """Role and index, such as actor-3; the first word. ROLE-any: the newest of that role."""
    run_dir: str = ""
    """Folder of the run on this host."""
    max_age_s: float = 60.0
    """Oldest heartbeat that is still a sign of life; several of --metrics-interval-s."""

    def __post_init__(self) -> None:
        require_positive(self, "max_age_s")
        require_wait(self, "max_age_s")


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--peer")
    try:
        args = parse_args(PROGRAM, words, HealthyArgs())
        age_s = heartbeat_age_s(Path(args.run_dir), args.peer, time.time())
    except MarioError as error:
        return refuse(PROGRAM, error)
    if age_s is None:
        print(f"{args.peer}: no heartbeat yet")
        return int(ExitCode.TEMPORARY)
    print(f"{args.peer}: last heartbeat {age_s:.1f} s ago")
    return int(ExitCode.DONE if age_s <= args.max_age_s else ExitCode.TEMPORARY)


def heartbeat_age_s(run_dir: Path, peer: str, now_s: float) -> float | None:
    """None: nothing was heard yet."""
    role, _, index = peer.rpartition("-")
    is_any = index == "any"
    if PEER_ID_PATTERN.fullmatch(f"{role}-0" if is_any else peer) is None:
        raise ConfigError(f"whose heartbeat? expected a word such as actor-3, got {peer!r}")
    file = RunPaths(run_dir).process_heartbeat(peer)
    files = sorted(file.parent.glob(f"{role}-*.jsonl")) if is_any else [file]
    times = [float(str(beat["time"])) for one in files if (beat := last_record(one))]
    return now_s - max(times) if times else None


if __name__ == "__main__":
    sys.exit(main())
