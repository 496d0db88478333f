from __future__ import annotations

import math
from dataclasses import fields, replace

import pytest

from common.config import Settings
from common.keys import MAX_CONNECTIONS
from launch.benchmarks.blocks import random_block
from launch.scaling import main
from launch.scaling_model import Measured, World, answer_for, block_bytes, loads_of

CHEAP = Measured(
    store_s=1e-9,
    store_with_keys_s=1e-9,
    sealed_bytes_per_s=1e15,
    sample_s=1e-9,
    update_s=1e-9,
    publish_s=1e-9,
    version_bytes=1.0,
    actor_agent_steps_per_s=1e6,
)
"""Nothing costs anything: what a test is about is put in."""


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
    assert world.actors_per_server < alone.actors_per_server / 4


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
        assert needs.processes + (needs.relays or needs.processes) <= MAX_CONNECTIONS


@pytest.mark.parametrize(
    ("world", "obstacle"),
    [
        (World(measured=replace(CHEAP, update_s=1e-3)), "64 ranks, not 94"),
        (World(measured=replace(CHEAP, store_with_keys_s=1e-4)), "64 shards, not 215"),
        (
            World(measured=replace(CHEAP, actor_agent_steps_per_s=60.0), has_keys=False),
            "10,000 processes, not 25,000",
        ),
        (
            World(measured=replace(CHEAP, actor_agent_steps_per_s=165.0)),
            "4,096 connections to the learner, not 10,228",
        ),
    ],
)
def test_what_a_run_cannot_have_is_told(world: World, obstacle: str) -> None:
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
    assert main(["--rate", "200"]) == 2
    assert "--rate must be at most --actor-agent-steps-per-s (162)" in capsys.readouterr().err
