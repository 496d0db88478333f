from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from common.batch import Batch
from common.messages import (
    Hello,
    PriorityUpdate,
    SampleRequest,
    Stats,
    StatsRequest,
)
from common.shared_files import remove_shared
from common.shared_slots import SharedSlots
from tests.batch_scene import BATCH, BatchScene
from tests.learner_factory import TINY, random_batch
from tests.scripted_peers import REPLAY

SHARED = "warpzone-test-batch-source"


def assert_equal(batch: Batch, other: Batch) -> None:
    for name in Batch.__slots__:
        assert torch.equal(getattr(batch, name), getattr(other, name)), name


@pytest.fixture
def shared_file() -> Iterator[str]:
    remove_shared(SHARED)
    yield SHARED
    remove_shared(SHARED)


def test_k_requests_are_outstanding_with_a_slot_each() -> None:
    scene = BatchScene()
    scene.source.beta = 0.7

    scene.join()
    scene.listen()

    assert [request.request_id for request in scene.waiting] == [0, 1, 2]
    assert [request.slot for request in scene.waiting] == [0, 1, 2]
    assert {(request.beta, request.batch_size) for request in scene.waiting} == {(0.7, BATCH)}
    assert {request.charge for request in scene.waiting} == {2 * BATCH}
    assert all(request.may_wait for request in scene.waiting)


def test_nothing_is_asked_before_the_welcome() -> None:
    scene = BatchScene()

    assert scene.source.next(0) is None
    assert [type(message) for message in scene.listen()] == [Hello]
    assert scene.source.waits_for() == f"replay server at {REPLAY}"


def test_a_slot_is_asked_for_again_when_it_is_released_and_not_before() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    scene.reply(random_batch(BATCH))
    ready = scene.source.next(0)
    assert ready is not None
    assert scene.source.next(0) is None
    before = scene.listen()

    scene.source.release(ready)

    assert [m for m in before if isinstance(m, SampleRequest)] == []
    (request,) = [m for m in scene.listen() if isinstance(m, SampleRequest)]
    assert (request.request_id, request.slot) == (3, ready.slot)


def test_a_batch_over_the_wire_is_what_the_server_sent() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    sent = random_batch(BATCH, seed=3)
    scene.reply(sent)

    ready = scene.source.next(0)

    assert ready is not None
    assert_equal(ready.batch, sent)
    assert ready.server_incarnation == scene.server.incarnation


def test_who_peeks_sees_what_comes_next_and_takes_nothing() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    assert scene.source.peek() is None
    scene.reply(random_batch(BATCH, seed=3))
    scene.reply(random_batch(BATCH, seed=4))
    assert scene.source.peek() is None
    scene.source.listen()

    peeked = [scene.source.peek(), scene.source.peek()]
    ready = scene.source.next(0)
    after = scene.source.peek()

    assert ready is not None
    assert peeked == [ready.batch, ready.batch]
    assert after is not None
    assert_equal(after, random_batch(BATCH, seed=4))


def test_a_batch_tells_what_its_weights_are_relative_to() -> None:
    scene = BatchScene()
    scene.source.beta = 0.7
    scene.join()
    scene.source.beta = 0.8
    scene.listen()
    scene.reply(random_batch(BATCH))

    ready = scene.source.next(0)

    assert ready is not None
    # The exponent is that of the request, whatever it has become since.
    assert (ready.min_priority, ready.beta) == (0.25, 0.7)


def test_inline_and_shared_batches_are_equal(shared_file: str) -> None:
    wire, shared = BatchScene(), BatchScene(shared_file)
    sent = random_batch(BATCH, seed=4)
    slots = SharedSlots.attach(shared_file, BATCH, TINY)
    for scene in (wire, shared):
        scene.join()
        scene.listen()
    target = slots.batches[shared.waiting[0].slot]
    for name in Batch.__slots__:
        getattr(target, name).copy_(getattr(sent, name))
    wire.reply(sent)
    shared.reply()

    by_wire, by_memory = wire.source.next(0), shared.source.next(0)

    assert by_wire is not None
    assert by_memory is not None
    assert_equal(by_wire.batch, by_memory.batch)


def test_an_inline_answer_is_taken_although_shared_memory_was_asked_for(shared_file: str) -> None:
    scene = BatchScene(shared_file)
    scene.join()
    scene.listen()
    assert {request.shared_file for request in scene.waiting} == {shared_file}
    sent = random_batch(BATCH)
    scene.reply(sent)

    ready = scene.source.next(0)

    assert ready is not None
    assert_equal(ready.batch, sent)


def test_priorities_go_back_with_the_ids_and_the_server_life() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    sent = random_batch(BATCH)
    scene.reply(sent)
    ready = scene.source.next(0)
    assert ready is not None

    scene.source.send_priorities(ready, torch.arange(BATCH, dtype=torch.float32))
    scene.server.read()

    received = scene.server.heard[-1]
    assert received.message == PriorityUpdate(server_incarnation=1)
    np.testing.assert_array_equal(received.arrays["slots"], sent.slots.numpy())
    np.testing.assert_array_equal(received.arrays["generations"], sent.generations.numpy())
    assert received.arrays["errors"].tolist() == [0.0, 1.0, 2.0, 3.0]


def test_inserted_steps_are_counted_from_replies_and_answers() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    scene.reply(random_batch(BATCH), inserted=100)
    scene.source.next(0)
    scene.server.status(inserted=130)
    scene.source.next(0)

    assert scene.progress.agent_steps == 130


def test_statistics_are_kept_when_they_come() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    scene.source.ask_stats()
    assert isinstance(scene.listen()[-1], StatsRequest)
    scene.server.say(Stats(values={"replay_size": 5}))

    scene.source.next(0)

    assert scene.source.stats == {"replay_size": 5}
