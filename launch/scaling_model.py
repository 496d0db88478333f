"""The arithmetic of many actors: pure functions of constants that were measured.

Every constant names the command that measures it; docs/scaling.md tells on what machine and when.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from common.config import Settings
from common.config_learning import MAX_SHARDS
from common.config_play import MAX_ACTORS
from common.keys import MAX_CONNECTIONS
from common.ranks import MAX_RANKS

RELAY_LINES = 2
"""To the learner: for weights, and for what it tells."""
BUSY = 0.7
"""Share of a core or a network that is planned with: beyond it answers are late."""


def block_bytes() -> int:
    """Of the arrays of a block of the default settings."""
    spec, items = Settings().spec, Settings().actor.block_steps
    steps = items + spec.n_step - 1
    pixels = (steps + spec.stack) * spec.height * spec.width
    per_step = 1 + 4 + 1 + 2 + 2 + 1
    """Action, reward, flags, frame, first frame of the episode, scripted or not."""
    per_item = 1 + 4
    """Action before it, priority."""
    return pixels + per_step * steps + per_item * items


def sample_bytes() -> int:
    """Of a sample that goes over the wire: both observations are whole (`batch_inline`)."""
    spec, actions, numbers, places = Settings().spec, 3 * 8, 3 * 4, 2 * 8
    return 2 * spec.stack * spec.height * spec.width + actions + numbers + places


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """On two cores of an AMD EPYC; seconds are those of one core."""

    store_s: float = 10.5e-6
    """Per agent step that is stored. `benchmark.py swarm`: at the highest rate in time."""
    store_with_keys_s: float = 14.4e-6
    """The same with keys: the lines are decrypted."""
    sealed_bytes_per_s: float = 760e6
    """That a core decrypts, and encrypts: what keys add to storing at one and the same rate.
    `benchmark.py swarm`."""
    sample_s: float = 1 / 192_864
    """Per sample through shared memory. `benchmark.py replay`."""
    sample_wire_s: float = 1 / 32_957
    """Per sample to a learner on another machine. `benchmark.py replay`."""
    update_s: float = 15.9e-3
    """Per update of 64, network `small`, bfloat16, one thread. `benchmark.py learner`."""
    publish_s: float = 3.39e-3
    """Per version, in the learner's own thread: 8 subscribers without keys. `benchmark.py weights`.
    What each subscriber costs besides is in `sealed_bytes_per_s`."""
    version_bytes: float = 5.7e6
    """A version on the wire. docs/protocol.md."""
    actor_agent_steps_per_s: float = 213.0
    """Of a core that plays on nes_py, four environments. `benchmark.py actor`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The constants, and what is assumed besides."""

    measured: Measured = field(default_factory=Measured)
    rate: float = 15.0
    batch_size: int = 64
    samples_per_insert: float = 4.0
    publish_s: float = 3.0
    cores: int = 8
    network_bytes_per_s: float = 1.25e9
    has_keys: bool = True
    shares_memory: bool = True
    """Of all shards with all ranks, which are on one machine then."""
    agent_step_bytes: float = field(
        default_factory=lambda: block_bytes() / Settings().actor.block_steps
    )

    @property
    def replay_s(self) -> float:
        """Of the replay server's core per agent step: stored once, sampled several times."""
        store_s = self.measured.store_with_keys_s if self.has_keys else self.measured.store_s
        one = self.measured.sample_s if self.shares_memory else self.measured.sample_wire_s
        return store_s + self.samples_per_insert * one

    @property
    def replay_bytes(self) -> float:
        """On the network of the servers' machines per agent step."""
        sampled = 0.0 if self.shares_memory else self.samples_per_insert
        return self.agent_step_bytes + sampled * sample_bytes()

    @property
    def actors_per_server(self) -> float:
        """That the core of one replay server is enough for."""
        return BUSY / (self.rate * self.replay_s)

    @property
    def envs_per_core(self) -> float:
        return self.measured.actor_agent_steps_per_s / self.rate

    @property
    def max_envs_per_actor(self) -> int:
        """An actor is one thread: with more environments than a core plays, each is slower."""
        return max(1, math.floor(self.envs_per_core))

    @property
    def seal_version_s(self) -> float:
        """Of the core that sends a version to one subscriber: each line has keys of its own."""
        return self.measured.version_bytes / self.measured.sealed_bytes_per_s * self.has_keys

    @property
    def max_lines(self) -> float:
        """Of a process with keys; without them only open files limit it."""
        return MAX_CONNECTIONS if self.has_keys else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """Of one of each part, when there is only one: 1 is all that it can do."""

    replay_core: float
    replay_lines: float
    replay_network: float
    learner_core: float
    learner_lines: float
    weights_core: float
    """Of the thread that sends, which is another core than that of the updates."""
    weights_network: float


NAMES = {
    "replay_core": "replay server",
    "replay_lines": "its connections",
    "replay_network": "its network",
    "learner_core": "learner",
    "learner_lines": "its connections to actors",
    "weights_core": "its encryption of weights",
    "weights_network": "its network, for weights",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """How many of each keep every load below its limit."""

    envs_per_actor: int
    processes: int
    """Of actors."""
    shards: int
    ranks: int
    relays: int
    """One per machine that plays; 0: actors ask the learner themselves."""
    regions: int
    """Relays between the learner and those of the machines; 0: none."""
    playing_machines: int
    other_machines: int
    """With shards and ranks, which share their networks."""
    obstacle: str = ""
    """What one run cannot have so many of; empty: it can."""

    @property
    def machines(self) -> int:
        return self.playing_machines + self.other_machines

    @property
    def server_cores(self) -> int:
        """A shard has a core and one for its lines, a rank has one."""
        return 2 * self.shards + self.ranks

    @property
    def learner_lines(self) -> int:
        """Everybody has one for what it tells, and whoever takes weights from it another."""
        telling = self.processes + self.relays + self.regions
        return telling + (self.regions or self.relays or self.processes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """For one number of actors, of one environment each."""

    actors: int
    agent_steps_per_s: float
    loads: Loads
    needs: Needs

    @property
    def first(self) -> str:
        """The part with the highest load."""
        name, load = max(
            ((name, getattr(self.loads, name)) for name in NAMES), key=lambda pair: pair[1]
        )
        return NAMES[name] if load > 1 else f"nothing; next the {NAMES[name]}"


def answer_for(world: World, actors: int) -> Answer:
    loads = loads_of(world, actors)
    return Answer(
        actors=actors,
        agent_steps_per_s=actors * world.rate,
        loads=loads,
        needs=needs_of(world, actors),
    )


def loads_of(world: World, actors: int) -> Loads:
    measured, steps_per_s = world.measured, actors * world.rate
    updates_per_s = steps_per_s * world.samples_per_insert / world.batch_size
    learner_s = updates_per_s * measured.update_s + measured.publish_s / world.publish_s
    network = BUSY * world.network_bytes_per_s
    return Loads(
        replay_core=steps_per_s * world.replay_s / BUSY,
        replay_lines=actors / world.max_lines,
        replay_network=steps_per_s * world.replay_bytes / network,
        # It waits for nobody in between, so that all of its core is its own.
        learner_core=learner_s,
        learner_lines=2 * actors / world.max_lines,
        weights_core=actors * world.seal_version_s / world.publish_s / BUSY,
        weights_network=actors * measured.version_bytes / world.publish_s / network,
    )


def needs_of(world: World, actors: int) -> Needs:
    """Servers that one machine cannot hold send batches over the wire, and need more cores."""
    needs = _needs_in(world, actors)
    if needs.other_machines == 1:
        return needs
    # Stable at once: what costs more cores does not come back to one machine.
    return _needs_in(replace(world, shares_memory=False), actors)


def _needs_in(world: World, actors: int) -> Needs:
    """Relays come first: they take the weights from the learner's network and its connections."""
    loads = loads_of(world, actors)
    has_relays = max(loads.weights_network, loads.weights_core, loads.learner_lines) > 1
    envs_per_actor = _envs_per_actor(world, actors)
    processes = math.ceil(actors / envs_per_actor)
    playing = math.ceil(processes / _actors_per_machine(world, envs_per_actor))
    per_sender = _subscribers_per_sender(world)
    needs = Needs(
        envs_per_actor=envs_per_actor,
        processes=processes,
        shards=math.ceil(max(loads.replay_core, loads.replay_network, processes / world.max_lines)),
        ranks=_ranks(world, loads),
        relays=playing if has_relays else 0,
        regions=math.ceil(playing / per_sender) if has_relays and playing > per_sender else 0,
        playing_machines=playing,
        other_machines=0,
    )
    other = max(math.ceil(needs.server_cores / world.cores), math.ceil(loads.replay_network))
    return replace(needs, other_machines=other, obstacle=_obstacle(world, needs))


def _ranks(world: World, loads: Loads) -> int:
    """All have the same part of a batch; where no number of ranks is enough, what would be."""
    least = math.ceil(loads.learner_core)
    return next((count for count in _possible_ranks(world) if count >= least), least)


def _possible_ranks(world: World) -> list[int]:
    return [count for count in range(1, MAX_RANKS + 1) if world.batch_size % count == 0]


def _envs_per_actor(world: World, actors: int) -> int:
    """So few that connections suffice, but never more than a core plays at the rate."""
    least = math.ceil(actors / min(actors, MAX_ACTORS, world.max_lines))
    for envs in range(least, world.max_envs_per_actor):
        processes = math.ceil(actors / envs)
        machines = math.ceil(processes / _actors_per_machine(world, envs))
        if processes + RELAY_LINES * machines <= world.max_lines:
            return envs
    return world.max_envs_per_actor


def _actors_per_machine(world: World, envs_per_actor: int) -> int:
    return max(1, math.floor(world.cores * world.envs_per_core / envs_per_actor))


def _obstacle(world: World, needs: Needs) -> str:
    limits = (
        ("ranks", needs.ranks, _possible_ranks(world)[-1]),
        ("shards", needs.shards, MAX_SHARDS),
        ("processes", needs.processes, MAX_ACTORS),
        ("connections to the learner", needs.learner_lines, world.max_lines),
    )
    over = (f"{most:,.0f} {name}, not {count:,}" for name, count, most in limits if count > most)
    return "; ".join(over)


def _subscribers_per_sender(world: World) -> int:
    """Of a learner or a relay: by its network, and by the core that encrypts."""
    measured = world.measured
    sending_s = max(measured.version_bytes / world.network_bytes_per_s, world.seal_version_s)
    return max(1, math.floor(BUSY * world.publish_s / sending_s))
