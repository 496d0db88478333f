"""What a run of many actors needs, and what is used up first: `python launch/scaling.py`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from common.cli import Program, parse_args, refuse
from common.config import Settings
from common.config_checks import require_between
from common.errors import ConfigError, MarioError
from launch.scaling_model import Answer, Measured, World, answer_for

PROGRAM = Program(
    name="python launch/scaling.py",
    description="""Compute from measured constants which part is used up first, and what to add.

Prints two tables in Markdown: the load of one of each part, and what keeps all loads below their
limit. The constants are those of docs/scaling.md, with the commands that measured them.

Examples:
  python launch/scaling.py
  python launch/scaling.py --rate 600 --actor-agent-steps-per-s 4081
  python launch/scaling.py --update-ms 2 --network-gbit 25
""",
)
ACTORS = (1, 10, 100, 1_000, 10_000, 100_000)
LOADS = {
    "replay_core": "replay server: core",
    "replay_lines": "connections",
    "replay_network": "network",
    "learner_core": "learner: updates",
    "learner_lines": "connections",
    "weights_core": "weights: encryption",
    "weights_network": "network",
}
BILLION = 1e9
FINE_BELOW = 0.1
"""Smaller loads are told with a decimal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingArgs:
    """What is assumed; everything else was measured."""

    rate: float = 15.0
    """Agent steps per second of an environment: nes_py on a core that ten of them share."""
    actor_agent_steps_per_s: float = Measured().actor_agent_steps_per_s
    """Agent steps per second of one core that plays."""
    update_ms: float = 1e3 * Measured().update_s
    """Time of an update of --batch-size transitions on one rank."""
    batch_size: int = Settings().learner.batch_size
    """Transitions per update."""
    samples_per_insert: float = Settings().replay.samples_per_insert
    """Times that each agent step is sampled."""
    publish_s: float = 3.0
    """Seconds between two versions of the weights."""
    cores: int = 8
    """Of a machine."""
    network_gbit: float = 10.0
    """Of a machine, each way, per second."""
    keys: bool = True
    """Lines are encrypted, as between machines."""

    def __post_init__(self) -> None:
        require_between(self, 0.1, 1e5, "rate", "actor_agent_steps_per_s")
        require_between(self, 0.01, 1e5, "update_ms", "publish_s")
        require_between(self, 1, 65_536, "batch_size", "cores")
        require_between(self, 0.001, 1e4, "samples_per_insert", "network_gbit")
        if self.rate > self.actor_agent_steps_per_s:
            most = self.actor_agent_steps_per_s
            raise ConfigError(
                f"--rate must be at most --actor-agent-steps-per-s ({most:g}), as an environment "
                f"is played on one core; got {self.rate:g}"
            )

    @property
    def world(self) -> World:
        measured = replace(
            Measured(),
            update_s=self.update_ms / 1e3,
            actor_agent_steps_per_s=self.actor_agent_steps_per_s,
        )
        return World(
            measured=measured,
            rate=self.rate,
            batch_size=self.batch_size,
            samples_per_insert=self.samples_per_insert,
            publish_s=self.publish_s,
            cores=self.cores,
            network_bytes_per_s=self.network_gbit * 1e9 / 8,
            has_keys=self.keys,
        )


@dataclass(frozen=True, slots=True)
class Page:
    """The two tables, row by row."""

    world: World
    actors: Sequence[int] = field(default=ACTORS)

    @property
    def answers(self) -> list[Answer]:
        return [answer_for(self.world, count) for count in self.actors]

    def loads(self) -> Iterator[str]:
        yield f"| actors | agent steps/s | {' | '.join(LOADS.values())} | used up first |"
        yield f"|---:|---:|{'---:|' * len(LOADS)}---|"
        for one in self.answers:
            cells = (_share(getattr(one.loads, name)) for name in LOADS)
            numbers = f"{one.actors:,} | {one.agent_steps_per_s:,.0f}"
            yield f"| {numbers} | {' | '.join(cells)} | {one.first} |"

    def needs(self) -> Iterator[str]:
        names = "environments per process | processes | shards | ranks | relays | regions"
        machines = "machines that play | others | machine-hours per billion agent steps"
        yield f"| actors | {names} | {machines} | one run has at most |"
        yield f"|---:|{'---:|' * 9}---|"
        for one in self.answers:
            need = one.needs
            hours = need.machines * BILLION / one.agent_steps_per_s / 3600
            numbers = (
                *(need.envs_per_actor, need.processes),
                *(need.shards, need.ranks, need.relays, need.regions),
                *(need.playing_machines, need.other_machines, hours),
            )
            cells = " | ".join(f"{number:,.0f}" for number in numbers)
            yield f"| {one.actors:,} | {cells} | {need.obstacle or 'enough'} |"


def _share(load: float) -> str:
    """In bold when one is not enough."""
    text = f"{load:.1%}" if load < FINE_BELOW else f"{load:,.0%}"
    return f"**{text}**" if load > 1 else text


def main(argv: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        args = parse_args(PROGRAM, words, ScalingArgs())
    except MarioError as error:
        return refuse(PROGRAM, error)
    page = Page(args.world)
    for line in (*page.loads(), "", *page.needs()):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
