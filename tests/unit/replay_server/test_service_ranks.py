"""Several ranks of one learner at one replay server."""

from __future__ import annotations

import pytest

from common.batch import allocate_batch
from common.messages import InlineBatchReply
from common.shared_slots import SharedSlots
from tests.scripted_peers import identity
from tests.service_factory import (
    BATCH,
    filled_service,
    joined,
    make_blocks,
    make_limiter,
    make_service,
)


def test_another_rank_of_the_learner_voids_nothing_and_changes_no_balance() -> None:
    service = make_service(make_limiter(starts=8, slack=64))
    actor = joined(service, identity("actor"))
    learner = joined(service, identity("learner"))
    learner.request(0)
    for block in make_blocks(6):
        actor.send_block(block)
    before = service.limiter.counts

    joined(service, identity("learner", 1))

    assert service.limiter.counts == before
    assert [type(answer.message) for answer in service.settle()] == [InlineBatchReply]


def test_every_rank_waits_and_is_counted_for_itself() -> None:
    service, _, first = filled_service(limiter=make_limiter(uses=2))
    second = joined(service, identity("learner", 1))
    first.request(0)
    second.request(0)

    answers = service.settle()

    assert [answer.routing for answer in answers] == [first.routing, second.routing]
    assert service.limiter.counts.sampled == 2 * BATCH


def test_the_shared_memory_of_each_rank_stays_mapped(monkeypatch: pytest.MonkeyPatch) -> None:
    service, _, first = filled_service()
    second = joined(service, identity("learner", 1))
    attached: list[str] = []

    class Slots:
        batches = (allocate_batch(BATCH, service._spec),)

    def attach(name: str, *_: object) -> Slots:
        attached.append(name)
        return Slots()

    monkeypatch.setattr(SharedSlots, "attach", attach)
    for request_id in range(2):
        first.request(request_id, shared_file="warpzone-a")
        second.request(request_id, shared_file="warpzone-b")
        service.settle()

    assert attached == ["warpzone-a", "warpzone-b"]
