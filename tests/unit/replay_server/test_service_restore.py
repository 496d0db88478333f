"""A server that takes over a cut goes on as if it had never ended."""

from __future__ import annotations

from common.messages import Ack
from replay_server.cut import take_cut
from replay_server.service import ReplayService
from tests.scripted_peers import identity
from tests.service_factory import (
    BLOCK_ITEMS,
    WINDOW,
    DirectPeer,
    joined,
    make_blocks,
    make_service,
    sample_request,
)


def used_service() -> ReplayService:
    service = make_service()
    actor = joined(service, identity("actor"))
    for block in make_blocks(4):
        actor.send_block(block)
    learner = joined(service, identity("learner"))
    learner.say(sample_request(1))
    service.settle()
    return service


def restored_from(service: ReplayService) -> ReplayService:
    cut = take_cut(32, service.buffer, service.limiter, service._ledger)
    fresh = make_service()
    fresh.restore(cut.counters)
    return fresh


def test_a_block_that_the_cut_has_is_not_stored_again() -> None:
    service = restored_from(used_service())
    actor = joined(service, identity("actor"))

    answer = actor.send_block(make_blocks(4)[3], sequence=3)

    assert answer == Ack(sequence=3, window=WINDOW)
    assert service.counts.duplicate_blocks == 1
    assert service.buffer.size == 0


def test_the_balance_goes_on() -> None:
    used = used_service()
    service = restored_from(used)

    assert service.limiter.counts == used.limiter.counts
    assert service.limiter.counts.inserted == 4 * BLOCK_ITEMS


def test_the_first_learner_keeps_the_balance_and_a_later_life_does_not() -> None:
    used = used_service()
    service = restored_from(used)
    DirectPeer(service, identity("learner", incarnation=2)).say_hello()
    first = service.limiter.counts

    DirectPeer(service, identity("learner", incarnation=3)).say_hello()

    assert first == used.limiter.counts
    assert service.limiter.counts != first
