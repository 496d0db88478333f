"""The command line of an actor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.cli import Program, parse_args, refuse, settings_from_config_flag
from common.component import run_component
from common.config import Settings
from common.devices import limit_torch_threads
from common.errors import ConfigError
from common.lifecycle import StopFlag, run_program
from common.logs import configure_logging

PROGRAM = Program(
    name="python -m actor",
    description="""Play with the newest weights and stream what happened to the replay server.

Waits for the replay server and the learner, in whatever order they start.

Examples:
  python -m actor --config runs/first/config.json --index 3
  python -m actor --index 0 --replay-endpoint tcp://127.0.0.1:5601
""",
)
FINISH_DEADLINE_S = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorArgs:
    """The settings of the run, and what only this process needs."""

    settings: Settings = field(default_factory=Settings)
    config: str = ""
    """A config.json of a run or a TOML file; flags go over it."""
    index: int = 0
    """Which actor this is, from 0; it sets the epsilon and the seed."""
    log_file: str = ""
    """Where to log; stderr when empty."""

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.settings.actor.actors:
            raise ConfigError(
                f"--index must be from 0 to {self.settings.actor.actors - 1}, one less than "
                f"--actors, got {self.index}"
            )


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        default = ActorArgs(settings=settings_from_config_flag(words))
        args = parse_args(PROGRAM, words, default)
    except ConfigError as error:
        return refuse(PROGRAM, error)
    log_file = Path(args.log_file) if args.log_file else None
    configure_logging(args.settings.run.run, "actor", args.index, log_file)
    stop = StopFlag.on_signals()
    return run_program(f"actor-{args.index}", lambda: _run(args, stop))


def _run(args: ActorArgs, stop: StopFlag) -> int:
    # Here, because `--help` should not wait for torch.
    from actor.assembly import build  # noqa: PLC0415
    from common.transport import ZmqNetwork  # noqa: PLC0415

    limit_torch_threads(1)
    network = ZmqNetwork()
    try:
        actor = build(args.settings, network, args.index)
        return run_component(actor, stop, finish_deadline_s=FINISH_DEADLINE_S)
    finally:
        network.close()
