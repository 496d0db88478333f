"""Look at a running replay server and change its balance: `python launch/control.py RUN`."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # The imports below take a second, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from common.cli import Program, abandon_stdout, command_words, parse_args, refuse
from common.config import Settings
from common.config_checks import require_at_least_zero, require_positive, require_wait
from common.endpoints import check_host
from common.errors import ConfigError, ExitCode, MarioError, PeerUnavailable
from common.handshake import open_link
from common.heartbeat import Identity
from common.ids import new_incarnation
from common.messages import Message, SetLimit, Stats, StatsRequest, Status
from common.settings_files import load_settings
from common.transport import ZmqNetwork
from launch.tables import make_table

PROGRAM = Program(
    name="python launch/control.py",
    description="""Show the replay server of a running run, or change its balance.

Examples:
  python launch/control.py runs/first
  python launch/control.py runs/first --samples-per-insert 8
""",
)
POLL_MS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlArgs:
    """Which run, and what to change."""

    run_dir: str = ""
    """Folder of the run, as the first word or as a flag."""
    samples_per_insert: float = 0.0
    """New number of samples per inserted agent step; 0 leaves it."""
    timeout_s: float = 5.0
    """How long to wait for an answer."""

    def __post_init__(self) -> None:
        require_at_least_zero(self, "samples_per_insert")
        require_positive(self, "timeout_s")
        require_wait(self, "timeout_s")


def main(argv: Sequence[str] | None = None) -> int:
    words = command_words(argv, "--run-dir")
    try:
        args = parse_args(PROGRAM, words, ControlArgs())
        settings = _run_settings(args.run_dir)
        answer = ask(settings, _question(args), args.timeout_s)
        print(as_table(answer), end="", flush=True)
    except MarioError as error:
        return refuse(PROGRAM, error)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        abandon_stdout()
    return 0


def _run_settings(run_dir: str) -> Settings:
    if not run_dir:
        raise ConfigError("which run? give its folder, for example runs/default")
    return load_settings(Path(run_dir) / "config.json")


def _question(args: ControlArgs) -> Message:
    if args.samples_per_insert:
        return SetLimit(samples_per_insert=args.samples_per_insert)
    return StatsRequest()


def ask(settings: Settings, question: Message, timeout_s: float) -> Stats | Status:
    """One question to the replay server of a run, asked once we are welcome."""
    identity = Identity(
        run_id=settings.run.run, role="controller", index=0, incarnation=new_incarnation()
    )
    endpoint = settings.endpoints.replay_endpoint
    check_host(endpoint)
    network = ZmqNetwork(keys_dir=settings.endpoints.keys_dir)
    try:
        link = open_link(network, endpoint, identity, settings.spec)
        end_s, asked = time.monotonic() + timeout_s, False
        while time.monotonic() < end_s:
            link.maintain(waiting=False)
            if link.is_welcome and not asked:
                asked = link.send(question)
            message = link.receive(POLL_MS)
            if isinstance(message, Stats | Status):
                return message
    finally:
        network.close()
    raise PeerUnavailable(f"no answer from {endpoint} within {timeout_s} s; is the run going on?")


def as_table(answer: Stats | Status) -> str:
    if isinstance(answer, Stats):
        rows = [
            (name, f"{value:,.4g}" if isinstance(value, float) else f"{value}")
            for name, value in answer.values.items()
        ]
    else:
        rows = [
            ("samples_per_insert_target", f"{answer.samples_per_insert:g}"),
            ("size", f"{answer.size:,}"),
            ("gate", answer.gate),
        ]
    console = Console()
    with console.capture() as captured:
        console.print(make_table(("replay server", "value"), rows, texts=("replay server",)))
    return captured.get()


if __name__ == "__main__":
    sys.exit(main())
