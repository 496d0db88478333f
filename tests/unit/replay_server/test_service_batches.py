from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from common.batch import Batch, allocate_batch
from common.codec import Array, decode, encode
from common.errors import BadMessage, ReplayEmpty
from common.messages import (
    Ack,
    BatchReply,
    InlineBatchReply,
    Ping,
    PriorityUpdate,
    Refused,
    SetLimit,
    Stats,
    StatsRequest,
    Status,
)
from common.metrics import METRIC_NAMES
from common.shared_slots import SharedSlots
from replay_server.service import MAX_PENDING_REQUESTS, Answer
from tests.scripted_peers import identity
from tests.service_factory import (
    BATCH,
    BLOCK_ITEMS,
    SERVER_LIFE,
    WINDOW,
    filled_service,
    joined,
    make_blocks,
    make_limiter,
    make_service,
    sample_request,
)


def replies(answers: list[Answer]) -> list[int]:
    return [a.message.request_id for a in answers if isinstance(a.message, BatchReply)]


@pytest.mark.parametrize("uses", [1, 4])
def test_every_pushed_step_is_stored_whatever_the_sample_interval(uses: int) -> None:
    service = make_service(make_limiter(slack=1000, uses=uses))
    actor = joined(service, identity("actor"))
    learner = joined(service, identity("learner"))
    for number, block in enumerate(make_blocks(20)):
        actor.send_block(block)
        learner.request(number, uses=uses)
        service.settle()

    assert service.buffer.inserted_items_total == 20 * BLOCK_ITEMS
    assert service.buffer.size == 20 * BLOCK_ITEMS


def test_the_balance_counts_every_use_of_a_batch() -> None:
    service, _, learner = filled_service(limiter=make_limiter(uses=3))

    learner.request(0, uses=3)
    service.settle()

    assert service.limiter.counts.sampled == 3 * BATCH
    assert service.buffer.sampled_items_total == BATCH


def test_requests_wait_until_learning_starts_and_are_then_served_in_order() -> None:
    service = make_service(make_limiter(starts=2 * BLOCK_ITEMS))
    actor = joined(service, identity("actor"))
    learner = joined(service, identity("learner"))
    for request_id in range(3):
        learner.request(request_id)
    first, second = make_blocks(2)
    actor.send_block(first)
    early = service.settle()

    actor.send_block(second)
    served = service.settle()

    assert early == []
    assert replies(served) == [0, 1, 2]


def test_too_many_requests_are_bad() -> None:
    service = make_service()
    learner = joined(service, identity("learner"))
    for request_id in range(MAX_PENDING_REQUESTS):
        learner.request(request_id)

    with pytest.raises(BadMessage, match="too_many_requests"):
        learner.request(MAX_PENDING_REQUESTS)


@pytest.mark.parametrize(("size", "uses"), [(65_536, 1), (2 * BATCH + 1, 1), (BATCH, 1000)])
def test_a_request_beyond_the_batches_of_the_run_is_refused_with_both_numbers(
    size: int, uses: int
) -> None:
    service, _, learner = filled_service(limiter=make_limiter(uses=2))

    (refusal,) = learner.say(sample_request(0, size=size, uses=uses))

    assert isinstance(refusal, Refused)
    assert str(2 * BATCH) in refusal.expected
    assert str(size * uses) in refusal.got
    assert service.counts.bad_messages == {"batch_size": 1}
    assert service.settle() == []


@pytest.mark.parametrize(
    "failure", [MemoryError(), OSError("no mapping"), RuntimeError("can't allocate"), ReplayEmpty()]
)
def test_a_request_that_fails_is_counted_and_the_next_is_served(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _, learner = filled_service()
    sample, failures = service.buffer.sample, [failure]

    def sample_but_once(size: int, beta: float, *, out: Batch | None = None) -> Batch:
        if failures:
            raise failures.pop()
        return sample(size, beta, out=out)

    monkeypatch.setattr(service.buffer, "sample", sample_but_once)
    learner.request(0)
    learner.request(1)

    assert replies(service.settle()) == [1]
    assert service.counts.bad_messages == {"serve": 1}


@pytest.mark.parametrize("failure", [OSError("no memory"), ValueError("too short")])
def test_a_file_that_cannot_be_mapped_any_more_falls_back_to_the_wire(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, _, learner = filled_service()

    def fail(*_: object) -> None:
        raise failure

    monkeypatch.setattr(SharedSlots, "attach", fail)
    learner.request(0, shared_file="warpzone-some-file")

    assert [type(answer.message) for answer in service.settle()] == [InlineBatchReply]
    assert service.counts.bad_messages == {"shared_file": 1}


def test_a_new_life_of_the_learner_voids_requests_and_earns_no_burst() -> None:
    service = make_service(make_limiter(starts=8, slack=64))
    actor = joined(service, identity("actor"))
    learner = joined(service, identity("learner"))
    learner.request(0)
    for block in make_blocks(12):
        actor.send_block(block)
    service._pending.clear()
    learner.request(1)

    joined(service, identity("learner", incarnation=2))

    assert replies(service.settle()) == []
    earned = (12 * BLOCK_ITEMS - 8) * 4
    assert service.limiter.counts.sampled == earned


def test_actors_are_held_and_released_by_a_status_to_all_of_them() -> None:
    service = make_service(make_limiter(starts=8, slack=64))
    actors = [joined(service, identity("actor", index)) for index in range(3)]
    learner = joined(service, identity("learner"))
    windows = []
    for block in make_blocks(8):
        answer = actors[0].send_block(block)
        assert isinstance(answer, Ack)
        windows.append(answer.window)
    held = service.waits_for()

    told: list[Answer] = []
    request_id = 0
    while not told:
        learner.request(request_id)
        told = [answer for answer in service.settle() if isinstance(answer.message, Status)]
        request_id += 1

    # Surplus is 4 x (inserted - 8): the fourth block takes it from 64 to 96.
    assert windows == [WINDOW] * 3 + [0] * 5
    assert held == "learner to catch up"
    assert {answer.routing for answer in told} == {actor.routing for actor in actors}
    assert {a.message.window for a in told if isinstance(a.message, Status)} == {WINDOW}
    assert service.settle() == []


def test_nobody_is_told_anything_while_nobody_was_held() -> None:
    service, _, learner = filled_service(3)

    learner.request(0)

    assert [type(answer.message) for answer in service.settle()] == [InlineBatchReply]


def test_the_ratio_can_be_changed_while_running() -> None:
    service, _, _ = filled_service()
    controller = joined(service, identity("controller"))

    (answer,) = controller.say(SetLimit(samples_per_insert=1.0))

    assert isinstance(answer, Status)
    assert answer.samples_per_insert == 1.0
    assert service.limiter.limit.samples_per_insert == 1.0
    # Nobody owes anything at the moment of the change.
    assert service.limiter.counts.sampled == 4 * BLOCK_ITEMS - 16


def test_statistics_use_registered_names_only() -> None:
    service, _, learner = filled_service()
    learner.request(0)
    service.settle()

    (answer,) = learner.say(StatsRequest())

    assert isinstance(answer, Stats)
    assert answer.values.keys() <= METRIC_NAMES
    assert answer.values["replay_size"] == 4 * BLOCK_ITEMS
    assert answer.values["replay_sample_total"] == BATCH


def test_a_batch_reply_carries_what_shards_need() -> None:
    service, _, learner = filled_service()
    learner.request(3)

    (answer,) = service.settle()

    reply = answer.message
    assert isinstance(reply, InlineBatchReply)
    assert reply.request_id == 3
    assert reply.server_incarnation == SERVER_LIFE
    assert reply.size == reply.inserted_total == 4 * BLOCK_ITEMS
    assert reply.mass == pytest.approx(service.buffer.mass)
    assert reply.credit == service.limiter.credit()
    layout = allocate_batch(BATCH, learner.service._spec)
    for name in reply.arrays:
        assert answer.arrays[name].shape == tuple(getattr(layout, name).shape), name


def test_weights_and_the_least_priority_of_a_reply_give_every_priority() -> None:
    service, _, learner = filled_service()
    learner.request(0)

    (answer,) = service.settle()

    reply = answer.message
    assert isinstance(reply, InlineBatchReply)
    drawn = torch.from_numpy(answer.arrays["slots"].copy())
    priorities = service.buffer.priorities.tree.get(drawn).numpy()
    told = reply.min_priority * answer.arrays["weights"].astype(np.float64) ** (-1 / 0.4)
    np.testing.assert_allclose(told, priorities, rtol=1e-5)
    assert reply.min_priority == priorities.min()


def test_a_part_of_a_batch_is_served_at_once_and_charged_what_it_says() -> None:
    service = make_service(make_limiter(starts=2 * BLOCK_ITEMS))
    actor, learner = joined(service, identity("actor")), joined(service, identity("learner"))
    actor.send_block(make_blocks(1)[0])
    part = replace(sample_request(0, size=3), charge=BATCH, may_wait=False, slot_rows=BATCH)

    learner.say(part)
    (answer,) = service.settle()

    # Learning has not begun here, but the learner has looked at all servers.
    assert service.waits_for() == "steps from actors"
    assert len(answer.arrays["actions"]) == 3
    assert service.limiter.counts.sampled == BATCH
    assert service.buffer.sampled_items_total == 3


def test_a_charge_beyond_the_batches_of_the_run_is_refused() -> None:
    _, _, learner = filled_service()

    (refusal,) = learner.say(replace(sample_request(0), charge=BATCH + 1))

    assert isinstance(refusal, Refused)


def test_a_status_carries_what_shards_need() -> None:
    service, _, learner = filled_service()

    (status,) = learner.say(Ping(incarnation=1, question=1))

    assert isinstance(status, Status)
    assert status.mass == pytest.approx(service.buffer.mass)
    assert status.credit == service.limiter.credit() == (4 * BLOCK_ITEMS - 16) * 4 + 64


def test_a_slack_without_end_still_makes_a_status_that_can_be_read() -> None:
    _, _, learner = filled_service(limiter=make_limiter(slack=1e30))

    (status,) = learner.say(Ping(incarnation=1, question=1))

    assert decode(encode(status)).message == status


def priority_arrays(answer: Answer, error: float) -> dict[str, Array]:
    return {
        "slots": answer.arrays["slots"],
        "generations": answer.arrays["generations"],
        "errors": np.full(BATCH, error, dtype=np.float32),
    }


def test_priorities_reach_the_buffer() -> None:
    service, _, learner = filled_service()
    learner.request(0)
    (batch,) = service.settle()
    before = service.buffer.mass

    learner.say(PriorityUpdate(server_incarnation=SERVER_LIFE), priority_arrays(batch, 100.0))

    assert service.buffer.mass > before + 50
    assert service.buffer.stale_priorities_total == 0


def test_priorities_of_another_server_life_are_stale() -> None:
    service, _, learner = filled_service()
    learner.request(0)
    (batch,) = service.settle()
    before = service.buffer.mass

    learner.say(PriorityUpdate(server_incarnation=1), priority_arrays(batch, 100.0))

    assert service.buffer.mass == before
    assert service.buffer.stale_priorities_total == BATCH


def test_priorities_of_odd_shapes_or_types_are_bad() -> None:
    service, _, learner = filled_service()
    learner.request(0)
    (batch,) = service.settle()
    good = priority_arrays(batch, 1.0)
    update = PriorityUpdate(server_incarnation=SERVER_LIFE)

    with pytest.raises(BadMessage, match="priority_shape"):
        learner.say(update, {**good, "errors": good["errors"][:-1]})
    with pytest.raises(BadMessage, match="priority_shape"):
        learner.say(update, {name: array.reshape(2, -1) for name, array in good.items()})
    with pytest.raises(BadMessage, match="priority_dtype"):
        learner.say(update, {**good, "errors": good["errors"].astype(np.int64)})


def test_priorities_for_slots_that_do_not_exist_are_stale() -> None:
    service, _, learner = filled_service()
    odd = np.array([-1, 2**62, 10**9], dtype=np.int64)
    arrays: dict[str, Array] = {
        "slots": odd,
        "generations": odd,
        "errors": np.ones(3, dtype=np.float32),
    }

    learner.say(PriorityUpdate(server_incarnation=SERVER_LIFE), arrays)

    assert service.buffer.stale_priorities_total == 3


@pytest.mark.parametrize("name", ["warpzone-that-is-not-there", "somewhere-else"])
def test_a_shared_slot_that_cannot_be_mapped_falls_back_to_the_wire(name: str) -> None:
    service, _, learner = filled_service()

    learner.request(0, shared_file=name)
    (answer,) = service.settle()

    assert isinstance(answer.message, InlineBatchReply)
    assert set(answer.arrays) == set(InlineBatchReply.arrays)
    assert service.counts.bad_messages == {"shared_file": 1}
