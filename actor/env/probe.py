"""`python -m actor.env.probe`: build, reset, play and close one environment in this process.

For launchers, which may not import the emulator themselves: to warm a host before actors start, and
to see whether environments can be built here at all. Writes one JSON object to stdout.
"""

from __future__ import annotations

import faulthandler
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from actor.env.construction import ConstructionPlan, Recipe, build_serially
from actor.env.host_lock import default_lock_path
from common.config import CoreName, EnvSettings
from common.errors import ExitCode, MarioError
from common.game import construction_deadline_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeArgs:
    """Build, reset, play and close one environment."""

    game: Literal["mario", "corridor"] = "mario"
    stage: str = "1-1"
    core: CoreName = "nes_py"
    role: str = "probe"
    index: int = 0
    lock: Literal["host", "none"] = "host"
    """host: one at a time on this host, as actors do; none: beside whoever else builds."""
    lock_path: str = ""
    """Another lock file than that of the host."""
    deadline_s: float = construction_deadline_s(1)
    agent_steps: int = 4
    """Agent steps to play before closing."""
    diagnostics: str = ""
    """JSON lines file for the stages; none when empty."""


def probe(args: ProbeArgs) -> dict[str, object]:
    """Seconds of every stage, of playing and of closing."""
    env, durations_s = build_serially(Recipe.of(_settings(args)), _plan(args))
    began = time.monotonic()
    for _ in range(args.agent_steps):
        env.step(0)
    played = time.monotonic()
    env.close()
    durations_s |= {"play": played - began, "close": time.monotonic() - played}
    return {"ok": True, "durations_s": durations_s}


def main() -> int:
    faulthandler.enable()
    args = tyro.cli(ProbeArgs, prog="actor.env.probe")
    try:
        report, exit_code = probe(args), ExitCode.DONE
    except MarioError as exc:
        report = {"ok": False, "error": f"{type(exc).__name__}: {exc}"}
        exit_code = exc.exit_code
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    sys.stdout.write(json.dumps(report) + "\n")
    return int(exit_code)


def _settings(args: ProbeArgs) -> EnvSettings:
    return EnvSettings(game=args.game, stage=args.stage, core=args.core)


def _plan(args: ProbeArgs) -> ConstructionPlan:
    lock_path = Path(args.lock_path) if args.lock_path else default_lock_path()
    return ConstructionPlan(
        role=args.role,
        index=args.index,
        deadline_s=args.deadline_s,
        lock_path=lock_path if args.lock == "host" else None,
        diagnostics_path=Path(args.diagnostics) if args.diagnostics else None,
    )


if __name__ == "__main__":
    sys.exit(main())
