from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from common.handshake import UNANSWERED_INTERVAL_S
from learner.ready_batch import ReadyBatch
from tests.service_factory import BATCH, BLOCK_ITEMS, make_blocks, make_limiter
from tests.shard_scene import K, ShardScene, blocks_of_error


def endless_scene(*num_blocks: int) -> ShardScene:
    """Servers without a balance, which hold that many blocks each."""
    scene = ShardScene(*(make_limiter(starts=1, slack=1e9) for _ in num_blocks))
    for shard, count in zip(scene.shards, num_blocks, strict=True):
        if count:
            shard.store(make_blocks(count))
    scene.join()
    return scene


def shards_of(scene: ShardScene, ready: ReadyBatch) -> dict[int, int]:
    """Rows from each server."""
    origins = scene.source._origins[ready.slot]
    return {scene.lines.index(origin.line): origin.rows for origin in origins}


def test_a_batch_is_whole_and_has_rows_of_every_server_by_mass() -> None:
    scene = endless_scene(6, 2)

    ready = scene.turn()

    assert ready is not None
    assert shards_of(scene, ready) == {0: BATCH * 6 // 8, 1: BATCH * 2 // 8}
    for name in ready.batch.__slots__:
        assert len(getattr(ready.batch, name)) == BATCH, name


def test_the_requests_of_k_batches_are_outstanding() -> None:
    scene = endless_scene(2, 2)
    for shard in scene.shards:
        shard.is_stopped = True

    for _ in range(6):
        scene.turn(0)

    assert [len(line.requests) + len(line.arrived) for line in scene.lines] == [K, K]


def test_priorities_go_back_to_the_server_that_drew_the_row() -> None:
    scene = endless_scene(2, 2)
    ready = scene.turn()
    assert ready is not None
    rows = shards_of(scene, ready)
    errors = torch.cat([torch.full((rows[0],), 100.0), torch.full((rows[1],), 400.0)])

    scene.source.send_priorities(ready, errors)
    slots = ready.batch.slots[: rows[0]], ready.batch.slots[rows[0] :]
    scene.source.release(ready)
    scene.turn()

    for shard, drawn, error in zip(scene.shards, slots, (100.0, 400.0), strict=True):
        tree = shard.service.buffer.priorities.tree
        expected = torch.full((len(drawn),), (error + 1e-3) ** 0.5, dtype=torch.float64)
        torch.testing.assert_close(tree.get(drawn), expected, rtol=1e-5, atol=1e-5)
        assert shard.service.buffer.stale_priorities_total == 0


def test_agent_steps_of_all_servers_add_up() -> None:
    scene = endless_scene(5, 2)

    scene.batches(2)

    assert scene.progress.agent_steps == 7 * BLOCK_ITEMS


def test_a_server_that_answers_no_more_is_left_out_and_the_others_go_on() -> None:
    scene = endless_scene(2, 2)
    scene.batches(2)

    scene.shards[1].is_stopped = True
    waited_s = 0.0
    while (ready := scene.turn(0.5)) is None or 1 in shards_of(scene, ready):
        waited_s += 0.5
        assert waited_s < 2 * UNANSWERED_INTERVAL_S + 1

    assert shards_of(scene, ready) == {0: BATCH}
    assert len(scene.batches(20)) == 20


def test_a_server_that_answers_again_is_asked_again() -> None:
    scene = endless_scene(2, 2)
    scene.shards[1].is_stopped = True
    for _ in range(10):
        scene.turn(0.5)

    scene.shards[1].is_stopped = False
    for _ in range(10):
        scene.turn(0.5)
    ready = scene.turn()

    assert ready is not None
    assert shards_of(scene, ready) == {0: BATCH // 2, 1: BATCH // 2}


def test_a_restarted_server_counts_for_nothing_until_it_fills_again() -> None:
    scene = endless_scene(2, 2)
    scene.batches(2)

    scene.shards[1].restart(make_limiter(starts=1, slack=1e9))
    for _ in range(10):
        scene.turn(0.5)
    empty = scene.turn()
    assert empty is not None
    before = shards_of(scene, empty)
    scene.shards[1].store(make_blocks(2))
    for _ in range(10):
        scene.turn(0.5)
    filled = scene.turn()

    assert before == {0: BATCH}
    assert filled is not None
    assert shards_of(scene, filled) == {0: BATCH // 2, 1: BATCH // 2}
    assert scene.progress.agent_steps == 6 * BLOCK_ITEMS


def test_without_any_server_it_says_whom_it_waits_for() -> None:
    scene = ShardScene(None, None)

    scene.source.next(0)

    assert scene.source.waits_for() == "replay servers at ipc:///replay-0, ipc:///replay-1"


def test_statistics_are_those_of_all_servers_that_answer() -> None:
    scene = endless_scene(3, 2)
    scene.source.ask_stats()
    scene.turn()
    scene.turn()
    both = scene.source.stats["replay_size"]

    scene.shards[1].is_stopped = True
    for _ in range(10):
        scene.turn(0.5)

    assert both == 5 * BLOCK_ITEMS
    assert scene.source.stats["replay_size"] == 3 * BLOCK_ITEMS


def test_a_change_of_the_balance_reaches_all_servers() -> None:
    scene = endless_scene(2, 2)

    assert scene.source.set_samples_per_insert(7.0)
    scene.turn()

    ratios = [shard.service.limiter.limit.samples_per_insert for shard in scene.shards]
    assert ratios == [7.0, 7.0]


def test_a_change_of_the_balance_that_not_all_would_hear_is_refused_as_a_whole() -> None:
    scene = endless_scene(2, 2)
    scene.shards[1].is_stopped = True
    for _ in range(10):
        scene.turn(0.5)

    is_done = scene.source.set_samples_per_insert(7.0)
    scene.turn()

    assert not is_done
    assert scene.shards[0].service.limiter.limit.samples_per_insert == 4.0


def test_nothing_is_asked_before_a_server_has_its_share_of_the_start_of_learning() -> None:
    scene = ShardScene(*(make_limiter(starts=3 * BLOCK_ITEMS) for _ in range(2)))
    for shard in scene.shards:
        shard.store(make_blocks(2))
    scene.join()
    before = [scene.turn() for _ in range(5)]

    scene.shards[0].store(make_blocks(1))

    assert before == [None] * 5
    assert "actors (32 steps" in scene.source.waits_for()
    (ready,) = scene.batches(1, turns=10)
    assert ready.batch.size == BATCH


def test_no_more_is_asked_than_the_credit_of_all_servers_allows() -> None:
    limits = [make_limiter(starts=2 * BLOCK_ITEMS, slack=2.0 * BATCH) for _ in range(2)]
    scene = ShardScene(*limits)
    scene.shards[0].store(make_blocks(2))
    scene.shards[1].store(make_blocks(1))
    scene.join()

    found = [scene.turn() for _ in range(20)]

    # The slack of the first server; the second has not begun to earn.
    assert sum(ready is not None for ready in found) == 2


EVENTS = st.lists(
    st.sampled_from(["turn", "release", "stop 0", "stop 1", "restart 0", "restart 1", "second"]),
    max_size=60,
)


@given(EVENTS)
@settings(max_examples=60, deadline=None)
def test_no_slot_is_ever_lost_or_has_two_owners(events: list[str]) -> None:
    scene = endless_scene(2, 2)
    held: list[ReadyBatch] = []
    for event in events:
        word, _, shard = event.partition(" ")
        if word == "release" and held:
            scene.source.release(held.pop(0))
        elif word == "stop":
            scene.shards[int(shard)].is_stopped ^= True
        elif word == "restart":
            scene.shards[int(shard)].restart(make_limiter(starts=1, slack=1e9))
            scene.shards[int(shard)].store(make_blocks(1))
        elif (ready := scene.turn(1.0 if word == "second" else 0.06)) is not None:
            held.append(ready)
        for line in scene.lines:
            owned = [request.slot for request in line.requests.values()]
            owned += [part.slot for part in line.arrived.values()]
            assert sorted([*owned, *line._free]) == list(range(K))
    for shard_ in scene.shards:
        shard_.is_stopped = False
    for _ in range(8):
        scene.turn(1.0)
    assert scene.batches(3)


@pytest.mark.parametrize("error", [0.01, 100.0])
def test_parts_follow_the_masses_not_the_numbers_of_steps(error: float) -> None:
    scene = ShardScene(*(make_limiter(starts=1, slack=1e9) for _ in range(2)))
    scene.shards[0].store(blocks_of_error(4, 1.0))
    scene.shards[1].store(blocks_of_error(4, error))
    scene.join()

    rows = [0, 0]
    for _ in range(100):
        ready = scene.turn()
        if ready is not None:
            for shard, number in shards_of(scene, ready).items():
                rows[shard] += number

    masses = [shard.service.buffer.mass for shard in scene.shards]
    assert rows[1] / sum(rows) == pytest.approx(masses[1] / sum(masses), abs=0.01)


def test_a_batch_is_at_hand_as_soon_as_its_parts_were_heard() -> None:
    scene = endless_scene(4, 4)

    before = scene.source.at_hand()
    scene.source.listen()
    ready = scene.source.at_hand()

    assert before is None
    assert ready is not None
    assert sum(shards_of(scene, ready).values()) == BATCH
