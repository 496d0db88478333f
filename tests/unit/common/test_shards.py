from __future__ import annotations

from dataclasses import replace

import pytest

from common.config import EndpointSettings, ReplaySettings, Settings
from common.errors import ConfigError
from common.shards import replay_endpoints, shard_of, share_of

PEERS = [f"actor-{index}" for index in range(1_000)]
TWO = EndpointSettings(replay_endpoint="tcp://127.0.0.1:5601, tcp://127.0.0.1:5611")


def test_endpoints_are_separated_by_commas() -> None:
    settings = Settings(endpoints=TWO, replay=ReplaySettings(replay_shards=2))

    assert replay_endpoints(settings) == ("tcp://127.0.0.1:5601", "tcp://127.0.0.1:5611")


def test_one_server_needs_no_list() -> None:
    assert replay_endpoints(Settings()) == ("tcp://127.0.0.1:5601",)


@pytest.mark.parametrize(("endpoints", "shards"), [(TWO, 1), (TWO, 3), (EndpointSettings(), 2)])
def test_another_number_of_endpoints_than_shards_is_refused(
    endpoints: EndpointSettings, shards: int
) -> None:
    settings = replace(Settings(), endpoints=endpoints, replay=ReplaySettings(replay_shards=shards))

    with pytest.raises(ConfigError, match=f"--replay-shards is {shards}; give as many"):
        replay_endpoints(settings)


def test_the_server_of_an_actor_is_the_same_everywhere_and_always() -> None:
    assert [shard_of(peer, 3) for peer in PEERS[:12]] == [0, 2, 0, 1, 2, 0, 1, 1, 0, 1, 0, 1]
    assert {shard_of(peer, 1) for peer in PEERS} == {0}


@pytest.mark.parametrize("shards", [2, 3, 8])
def test_actors_are_spread_about_evenly(shards: int) -> None:
    counts = [0] * shards
    for peer in PEERS:
        counts[shard_of(peer, shards)] += 1

    assert min(counts) > 0.8 * len(PEERS) / shards


def test_a_new_server_takes_actors_and_moves_none_between_the_others() -> None:
    before = {peer: shard_of(peer, 4) for peer in PEERS}

    after = {peer: shard_of(peer, 5) for peer in PEERS}

    moved = {peer for peer in PEERS if before[peer] != after[peer]}
    assert {after[peer] for peer in moved} == {4}
    assert 0.1 < len(moved) / len(PEERS) < 0.3


def test_shares_are_rounded_up_so_that_together_they_are_enough() -> None:
    assert [share_of(5_000, shards) for shards in (1, 2, 3)] == [5_000, 2_500, 1_667]
    assert share_of(0, 4) == 0
