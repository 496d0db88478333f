"""The command line of an actor."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from common.channels import Network
from common.cli import Program
from common.component import Component
from common.config import Settings
from common.errors import ConfigError
from common.ids import Role
from common.process import Work, run_process

PROGRAM = Program(
    name="python -m actor",
    description="""Play with the newest weights and stream what happened to the replay server.

Waits for the replay server and the learner, in whatever order they start. With --evaluate it
plays greedy episodes on the newest checkpoints instead and writes eval.jsonl.

Examples:
  python -m actor --config runs/first/config.json --index 3
  python -m actor --index 0 --replay-endpoint tcp://127.0.0.1:5601
  python -m actor --evaluate --config runs/first/config.json
""",
)
FINISH_DEADLINE_S = 1.5
ACTOR_NICENESS = 5
"""Where cores are few all wait for the learner; an actor that plays ahead would only delay it."""
EVALUATOR_NICENESS = 10
"""An evaluator takes what training leaves: its result may come later, not at others' cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorArgs:
    """The settings of the run, and what only this process needs."""

    settings: Settings = field(default_factory=Settings)
    config: str = ""
    """A config.json of a run or a TOML file; flags go over it."""
    index: int = 0
    """Which actor this is, from 0; it sets the epsilon and the seed."""
    evaluate: bool = False
    """Be the evaluator: never explore, never feed the replay server, judge checkpoints."""
    log_file: str = ""
    """Where to log; stderr when empty."""

    @property
    def role(self) -> Role:
        return "evaluator" if self.evaluate else "actor"

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.settings.actor.actors:
            raise ConfigError(
                f"--index must be from 0 to {self.settings.actor.actors - 1}, one less than "
                f"--actors, got {self.index}"
            )


def main(argv: Sequence[str] | None = None) -> int:
    return run_process(PROGRAM, lambda s: ActorArgs(settings=s), _plan, argv)


def _plan(args: ActorArgs) -> Work:
    def build_actor(network: Network) -> Component:
        # Here, because `--help` should not wait for torch.
        from actor.assembly import build  # noqa: PLC0415

        os.nice(ACTOR_NICENESS)
        return build(args.settings, network, args.index)

    def build_evaluator(network: Network) -> Component:
        from actor.evaluator_assembly import build  # noqa: PLC0415 - as above

        os.nice(EVALUATOR_NICENESS)
        return build(args.settings, network, args.index)

    chosen = build_evaluator if args.evaluate else build_actor
    return Work(build=chosen, threads=1, finish_deadline_s=FINISH_DEADLINE_S)
