"""The balance between playing and learning over several replay servers."""

from __future__ import annotations

import numpy as np
import pytest

from replay_server.rate_limit import surplus_samples
from tests.service_factory import BATCH, BLOCK_ITEMS, make_limiter
from tests.shard_scene import K, ShardScene, blocks_of_error

RATIO = 4.0
STARTS = 16
SLACK = 64.0


class Traffic:
    """Actors that obey their windows; the steps of the first server are the most surprising."""

    def __init__(self, shards: int = 2) -> None:
        limiters = [make_limiter(ratio=RATIO, starts=STARTS, slack=SLACK) for _ in range(shards)]
        self.scene = ShardScene(*limiters)
        self.blocks = [blocks_of_error(1, 50.0 if shard == 0 else 0.5) for shard in range(shards)]
        self.batches = 0
        self.scene.join()

    def insert(self, shard: int) -> bool:
        server = self.scene.shards[shard]
        # What the server would tell an actor that asks.
        if server.service.status().window == 0:
            return False
        server.store(self.blocks[shard])
        return True

    def learn(self) -> None:
        ready = self.scene.turn()
        if ready is not None:
            self.batches += 1
            self.scene.source.release(ready)

    @property
    def inserted(self) -> list[int]:
        return [shard.service.buffer.inserted_items_total for shard in self.scene.shards]

    @property
    def surplus(self) -> list[float]:
        limiters = [shard.service.limiter for shard in self.scene.shards]
        return [surplus_samples(limiter.counts, limiter.limit) for limiter in limiters]


@pytest.mark.parametrize("share_of_first", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("learner_share", [0.3, 0.9])
def test_the_ratio_holds_over_all_servers_together(
    share_of_first: float, learner_share: float
) -> None:
    traffic, rng = Traffic(), np.random.default_rng(7)
    for _ in range(3_000):
        if rng.random() < learner_share:
            traffic.learn()
        else:
            traffic.insert(int(rng.random() >= share_of_first))

    earned = RATIO * (sum(traffic.inserted) - 2 * STARTS)
    # Either side may be ahead by the slack of both servers, and the learner by what it has asked.
    assert (
        abs(earned - traffic.batches * BATCH) <= 2 * SLACK + (K + 1) * BATCH + RATIO * BLOCK_ITEMS
    )
    assert earned > 50 * BATCH


def test_no_server_pays_for_the_draws_that_its_actors_have_not_earned() -> None:
    traffic, rng = Traffic(), np.random.default_rng(3)
    for _ in range(1_000):
        traffic.insert(int(rng.random() < 0.8))
        for _ in range(K):
            traffic.learn()

    # The first has a fifth of the steps and most of the mass, and so of the rows.
    rows = [shard.service.buffer.sampled_items_total for shard in traffic.scene.shards]
    assert rows[0] > 2 * rows[1]
    assert all(abs(surplus) <= SLACK + (K + 1) * BATCH for surplus in traffic.surplus)
    assert traffic.inserted[1] > 2 * traffic.inserted[0]


def test_a_server_whose_actors_are_gone_holds_nobody_up() -> None:
    traffic = Traffic()
    for _ in range(6):
        traffic.insert(0)
        traffic.learn()
    for _ in range(300):
        traffic.insert(1)
        traffic.learn()
    before = traffic.inserted[1], traffic.batches

    for _ in range(300):
        traffic.insert(1)
        traffic.learn()

    inserted, batches = traffic.inserted[1] - before[0], traffic.batches - before[1]
    assert inserted >= 100 * BLOCK_ITEMS
    assert batches * BATCH == pytest.approx(RATIO * inserted, rel=0.1)


def test_a_learner_that_is_gone_holds_the_actors_of_every_server() -> None:
    traffic = Traffic()

    for _ in range(50):
        traffic.insert(0)
        traffic.insert(1)

    most = STARTS + SLACK / RATIO + BLOCK_ITEMS
    assert all(inserted <= most for inserted in traffic.inserted)
