"""The command line of an actor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from common.channels import Network
from common.cli import Program
from common.component import Component
from common.config import Settings
from common.errors import ConfigError
from common.process import Work, run_process

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
    return run_process("actor", PROGRAM, lambda s: ActorArgs(settings=s), _plan, argv)


def _plan(args: ActorArgs) -> Work:
    def build_actor(network: Network) -> Component:
        # Here, because `--help` should not wait for torch.
        from actor.assembly import build  # noqa: PLC0415

        return build(args.settings, network, args.index)

    return Work(build=build_actor, threads=1, finish_deadline_s=FINISH_DEADLINE_S)
