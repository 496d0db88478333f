from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from common.config import LearnerSettings, RunSettings, Settings
from common.keys import MAX_CONNECTIONS
from launch.benchmarks.blocks import random_block
from launch.relay import RelayArgs, build
from launch.scaling import Page, ScalingArgs, main
from launch.scaling_model import (
    RELAY_LINES,
    Measured,
    World,
    answer_for,
    block_bytes,
    loads_of,
    sample_bytes,
)
from tests.scaling_tables import DOCS, FAST

CHEAP = Measured(
    store_s=1e-9,
    store_with_keys_s=1e-9,
    sealed_bytes_per_s=1e15,
    sample_s=1e-9,
    sample_wire_s=1e-9,
    update_s=1e-9,
    publish_s=1e-9,
    version_bytes=1.0,
    actor_agent_steps_per_s=1e6,
)
"""Nothing costs anything: what a test is about is put in."""
WIDE = World(measured=CHEAP, network_bytes_per_s=1e15)
"""Batches between machines cost nothing either."""


def test_a_block_has_the_bytes_that_are_sent() -> None:
    block = random_block(Settings().spec, Settings().actor.block_steps)

    sent = sum(getattr(block, item.name).nbytes for item in fields(block))

    assert block_bytes() == sent


def test_every_load_grows_in_proportion_to_the_actors() -> None:
    world = World(measured=replace(Measured(), publish_s=0.0))

    one, ten = loads_of(world, 100), loads_of(world, 1_000)

    for item in fields(one):
        assert getattr(ten, item.name) == pytest.approx(10 * getattr(one, item.name))


@pytest.mark.parametrize(
    ("constant", "first", "needed"),
    [
        ({"update_s": 0.1}, "learner", {"ranks": 94}),
        ({"store_with_keys_s": 1e-4}, "replay server", {"shards": 3}),
        ({"version_bytes": 1e7}, "its network, for weights", {"relays": 1}),
        (
            {"version_bytes": 2e6, "sealed_bytes_per_s": 2e8},
            "its encryption of weights",
            {"relays": 1},
        ),
    ],
)
def test_the_part_that_costs_most_is_used_up_first_and_added(
    constant: dict[str, float], first: str, needed: dict[str, int]
) -> None:
    world = World(measured=replace(CHEAP, **constant))

    answer = answer_for(world, 1_000)

    assert answer.first == first
    assert {name: getattr(answer.needs, name) for name in needed} == needed


def test_beyond_the_connections_of_a_learner_actors_play_several_environments_each() -> None:
    few, many = (answer_for(World(measured=CHEAP), count).needs for count in (4_000, 10_000))

    assert few.envs_per_actor == 1
    assert many.envs_per_actor == 3
    assert math.ceil(10_000 / 3) <= 4_096


def test_without_keys_connections_are_no_limit() -> None:
    loads = loads_of(World(measured=CHEAP, has_keys=False), 100_000)

    assert loads.replay_lines == loads.learner_lines == 0


def test_a_server_that_is_sampled_from_holds_as_many_actors_as_its_load_says() -> None:
    world = World()
    alone = replace(world, samples_per_insert=0.0)

    assert loads_of(world, 1_000).replay_core == pytest.approx(1_000 / world.actors_per_server)
    costs = world.measured
    sampled = 1 + world.samples_per_insert * costs.sample_s / costs.store_with_keys_s
    assert alone.actors_per_server / world.actors_per_server == pytest.approx(sampled)
    assert sampled > 2


@pytest.mark.parametrize("actors", [1, 10, 100, 1_000, 10_000, 100_000])
@pytest.mark.parametrize("has_keys", [True, False])
def test_what_is_needed_is_enough(actors: int, has_keys: bool) -> None:
    world = World(has_keys=has_keys)
    answer = answer_for(world, actors)
    loads, needs = answer.loads, answer.needs

    assert loads.replay_core / needs.shards <= 1
    assert loads.replay_network / needs.shards <= 1
    assert loads.learner_core / needs.ranks <= 1
    assert loads.replay_lines / needs.shards / needs.envs_per_actor <= 1
    subscribers = needs.regions or needs.relays or actors
    assert loads.weights_network * subscribers / actors <= 1
    assert loads.weights_core * subscribers / actors <= 1


@pytest.mark.parametrize("actors", [1, 10, 100, 1_000, 10_000, 100_000])
def test_cores_that_play_are_enough_and_an_actor_has_no_more_than_one(actors: int) -> None:
    world = World()
    needs = answer_for(world, actors).needs
    cores_per_actor = needs.envs_per_actor / world.envs_per_core

    assert cores_per_actor <= 1
    assert needs.processes * needs.envs_per_actor >= actors
    assert needs.processes * cores_per_actor <= needs.playing_machines * world.cores


def test_a_run_that_can_be_has_its_connections() -> None:
    for actors in (10, 100, 1_000):
        needs = answer_for(World(), actors).needs
        assert needs.obstacle == ""
        assert needs.learner_lines <= MAX_CONNECTIONS


class CountedNetwork:
    """Makes nothing, and knows which lines would have led where."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def __getattr__(self, kind: str) -> Callable[[str], None]:
        def open_line(endpoint: str) -> None:
            if kind != "publisher":
                self.opened.append(endpoint)

        return open_line


def test_a_relay_has_as_many_lines_as_are_counted_for_it(tmp_path: Path) -> None:
    network, settings = CountedNetwork(), Settings(run=RunSettings(runs_dir=str(tmp_path)))
    counted: Any = network

    build(RelayArgs(settings=settings, downstream="ipc:///there"), counted)

    assert len(network.opened) == RELAY_LINES
    needs = answer_for(World(), 1_000).needs
    assert needs.relays > needs.regions == 0
    assert needs.learner_lines == needs.processes + needs.relays * RELAY_LINES


def test_lines_of_relays_are_kept_free_for_them() -> None:
    """At so many actors that connections just suffice."""
    world = replace(WIDE, measured=replace(CHEAP, version_bytes=1e7, actor_agent_steps_per_s=60.0))

    needs = [answer_for(world, count).needs for count in range(3_500, 12_000, 20)]

    assert max(one.learner_lines for one in needs) > 0.99 * MAX_CONNECTIONS
    assert {one.obstacle for one in needs} == {""}


@pytest.mark.parametrize("args", [ScalingArgs(), FAST, ScalingArgs(batch_size=48)])
def test_a_row_that_is_enough_is_one_that_the_programs_take(args: ScalingArgs) -> None:
    enough = [one.needs for one in Page(args.world).answers if not one.needs.obstacle]

    assert len(enough) >= 3
    for needs in enough:
        LearnerSettings(batch_size=args.batch_size, learner_ranks=needs.ranks)


def test_servers_that_one_machine_cannot_hold_send_their_batches_over_the_wire() -> None:
    world = World()
    wired = replace(world, shares_memory=False)
    near, far = answer_for(world, 100).needs, answer_for(world, 1_000).needs

    assert near.server_cores <= world.cores < far.server_cores
    loads = loads_of(wired, 1_000)
    assert loads.replay_core / far.shards <= 1
    assert loads.replay_network / far.other_machines <= 1
    assert far.server_cores <= far.other_machines * world.cores
    slow = replace(world.measured, sample_wire_s=1e-3)
    assert answer_for(replace(world, measured=slow), 100).needs == near
    assert answer_for(replace(world, measured=slow), 1_000).needs.shards > far.shards


def test_servers_on_several_machines_for_their_network_share_no_memory() -> None:
    world = World(cores=64, network_bytes_per_s=1.25e8)
    needs = answer_for(world, 1_000).needs

    assert needs.other_machines > 1
    loads = loads_of(replace(world, shares_memory=False), 1_000)
    assert loads.replay_network / needs.other_machines <= 1
    assert loads.replay_core / needs.shards <= 1


def test_a_sample_has_the_bytes_that_are_sent() -> None:
    batch_bytes = Settings().learner.batch_size * sample_bytes()
    lines = (DOCS / "protocol.md").read_text(encoding="utf-8").splitlines()
    (row,) = (line for line in lines if line.startswith("| `batch_inline` | replay"))

    assert f"| {batch_bytes / 1e6:.1f} MB |" in row


@pytest.mark.parametrize(
    ("world", "constant", "obstacle"),
    [
        (WIDE, {"update_s": 1e-3}, "64 ranks, not 94"),
        (WIDE, {"store_with_keys_s": 1e-4}, "64 shards, not 215"),
        (
            replace(WIDE, has_keys=False),
            {"actor_agent_steps_per_s": 60.0},
            "10,000 processes, not 25,000",
        ),
        (
            WIDE,
            {"actor_agent_steps_per_s": 165.0, "version_bytes": 1e9},
            "4,096 connections to the learner, not 11,365",
        ),
        (replace(WIDE, batch_size=48), {"update_s": 4e-4}, "48 ranks, not 51"),
    ],
)
def test_what_a_run_cannot_have_is_told(
    world: World, constant: dict[str, float], obstacle: str
) -> None:
    world = replace(world, measured=replace(CHEAP, **constant))

    assert answer_for(world, 100_000).needs.obstacle == obstacle


def test_without_keys_a_subscriber_costs_only_the_network() -> None:
    assert loads_of(World(has_keys=False), 1_000).weights_core == 0


def test_ten_actors_need_no_more_than_one_of_each() -> None:
    answer = answer_for(World(), 10)

    assert answer.first.startswith("nothing; next the ")
    assert (answer.needs.shards, answer.needs.ranks, answer.needs.relays) == (1, 1, 0)


def test_what_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--rate", "0"]) == 2
    assert "--rate must be between" in capsys.readouterr().err
    assert main(["--rate", "300"]) == 2
    assert "--rate must be at most --actor-agent-steps-per-s (213)" in capsys.readouterr().err
