"""The command line of the replay server."""

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
    name="python -m replay_server",
    description="""Store what actors send, sample by priority for the learner, keep both in balance.

Examples:
  python -m replay_server --config runs/first/config.json
  python -m replay_server --device cpu --replay-endpoint tcp://127.0.0.1:5601
""",
)
FINISH_DEADLINE_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayArgs:
    """The settings of the run, and what only this process needs."""

    settings: Settings = field(default_factory=Settings)
    config: str = ""
    """A config.json of a run or a TOML file; flags go over it."""
    log_file: str = ""
    """Where to log; stderr when empty."""


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    try:
        default = ReplayArgs(settings=settings_from_config_flag(words))
        args = parse_args(PROGRAM, words, default)
    except ConfigError as error:
        return refuse(PROGRAM, error)
    log_file = Path(args.log_file) if args.log_file else None
    configure_logging(args.settings.run.run, "replay_server", 0, log_file)
    stop = StopFlag.on_signals()
    return run_program("replay_server", lambda: _run(args, stop))


def _run(args: ReplayArgs, stop: StopFlag) -> int:
    # Here, because `--help` should not wait for torch.
    from common.transport import ZmqNetwork  # noqa: PLC0415
    from replay_server.assembly import build  # noqa: PLC0415

    limit_torch_threads(1)
    network = ZmqNetwork()
    try:
        server = build(args.settings, network)
        return run_component(server, stop, finish_deadline_s=FINISH_DEADLINE_S)
    finally:
        network.close()
