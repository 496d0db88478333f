"""Look at a running run and change what may be changed: `python launch/control.py RUN`."""

from __future__ import annotations

import signal
import sys

if __name__ == "__main__":
    # The imports below take a second, and there is nothing to stop yet.
    signal.signal(signal.SIGINT, lambda *_: sys.exit(130))

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from common.cli import Program, command_words, parse_args, run_command
from common.config import Settings
from common.config_checks import require, require_positive, require_wait
from common.endpoints import check_host
from common.errors import ConfigError, ExitCode, PeerUnavailable
from common.handshake import open_link
from common.heartbeat import Identity
from common.ids import new_incarnation, peer_id
from common.messages import Stats, StatsRequest
from common.settings_files import load_settings
from common.shards import replay_endpoints
from common.transport import ZmqNetwork
from launch.learner_control import ask_learner, asked_by, request_for
from launch.tables import make_table

PROGRAM = Program(
    name="python launch/control.py",
    description="""Show the replay servers of a running run, or change the run while it goes on.

Changes are answered by the learner and written to controls.jsonl of the run, with who and when.

Examples:
  python launch/control.py runs/first
  python launch/control.py runs/first --samples-per-insert 8
  python launch/control.py runs/first --exploration-scale 2 --lr-scale 0.5
  python launch/control.py runs/first --checkpoint
  python launch/control.py runs/first --stop
""",
)
POLL_MS = 100
VALUES = ("samples_per_insert", "exploration_scale", "lr_scale", "distance_weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlArgs:
    """Which run, and what to change."""

    run_dir: str = ""
    """Folder of the run, as the first word or as a flag."""
    samples_per_insert: float | None = None
    """New number of samples per inserted agent step."""
    exploration_scale: float | None = None
    """New factor on the epsilon ladder."""
    lr_scale: float | None = None
    """New factor on the learning rate."""
    distance_weight: float | None = None
    """New shaped reward per pixel of progress."""
    checkpoint: bool = False
    """Write a checkpoint now."""
    stop: bool = False
    """Save and end the run."""
    timeout_s: float = 5.0
    """How long to wait for an answer."""

    def __post_init__(self) -> None:
        for name, value in self.wishes():
            require(0 <= value < math.inf, name, "at least 0 and finite", value)
        require_positive(self, "timeout_s")
        require_wait(self, "timeout_s")

    def wishes(self) -> list[tuple[str, float]]:
        """What is to change, in the order of the flags; stopping comes last."""
        given = [(name, getattr(self, name)) for name in VALUES]
        wanted = [(name, float(value)) for name, value in given if value is not None]
        return wanted + [(name, 0.0) for name in ("checkpoint", "stop") if getattr(self, name)]


def main(argv: Sequence[str] | None = None) -> int:
    return run_command(PROGRAM, lambda: look_or_change(command_words(argv, "--run-dir")))


def look_or_change(words: Sequence[str]) -> int:
    args = parse_args(PROGRAM, words, ControlArgs())
    settings = _run_settings(args.run_dir)
    if args.wishes():
        return change(settings, args)
    for index, endpoint in enumerate(replay_endpoints(settings)):
        answer = ask(settings, endpoint, args.timeout_s)
        print(as_table(answer, peer_id("replay_server", index)), end="", flush=True)
    return int(ExitCode.DONE)


def _run_settings(run_dir: str) -> Settings:
    if not run_dir:
        raise ConfigError("which run? give its folder, for example runs/default")
    return load_settings(Path(run_dir) / "config.json")


def change(settings: Settings, args: ControlArgs) -> int:
    """Every wish after the other; the exit code says whether all were granted."""
    code = ExitCode.DONE
    for name, value in args.wishes():
        request = request_for(settings, name, value, asked_by())
        reply = ask_learner(settings, request, args.timeout_s)
        print(reply.text if reply.accepted else f"refused: {reply.text}", flush=True)
        code = code if reply.accepted else ExitCode.CONFIGURATION
    return int(code)


def ask(settings: Settings, endpoint: str, timeout_s: float) -> Stats:
    """The statistics of a replay server of the run, asked for once we are welcome."""
    identity = Identity(
        run_id=settings.run.run, role="controller", index=0, incarnation=new_incarnation()
    )
    check_host(endpoint)
    network = ZmqNetwork(keys_dir=settings.endpoints.keys_dir)
    try:
        link = open_link(network, endpoint, identity, settings.spec)
        end_s, asked = time.monotonic() + timeout_s, False
        while time.monotonic() < end_s:
            link.maintain(waiting=False)
            if link.is_welcome and not asked:
                asked = link.send(StatsRequest())
            message = link.receive(POLL_MS)
            if isinstance(message, Stats):
                return message
    finally:
        network.close()
    raise PeerUnavailable(f"no answer from {endpoint} within {timeout_s} s; is the run going on?")


def as_table(answer: Stats, name: str) -> str:
    rows = [
        (name, f"{value:,.4g}" if isinstance(value, float) else f"{value}")
        for name, value in answer.values.items()
    ]
    console = Console()
    with console.capture() as captured:
        console.print(make_table((name, "value"), rows, texts=(name,)))
    return captured.get()


if __name__ == "__main__":
    sys.exit(main())
