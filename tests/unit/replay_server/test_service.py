from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from common.codec import Array
from common.errors import BadMessage
from common.messages import (
    Ack,
    BlockMessage,
    Identify,
    Message,
    Ping,
    Refused,
    Reject,
    SetLimit,
    Welcome,
)
from tests.scripted_peers import identity
from tests.service_factory import (
    BLOCK_ITEMS,
    SERVER_LIFE,
    WINDOW,
    DirectPeer,
    block_arrays,
    joined,
    make_blocks,
    make_limiter,
    make_service,
    sample_request,
)


def test_a_fitting_peer_is_welcomed_with_the_window() -> None:
    (answer,) = DirectPeer(make_service(), identity("actor")).say_hello()

    assert answer == Welcome(server_incarnation=SERVER_LIFE, window=WINDOW)


@pytest.mark.parametrize(("others", "window"), [(99, WINDOW), (199, 2), (599, 1), (2_000, 1)])
def test_the_more_actors_there_are_the_fewer_blocks_each_may_have_under_way(
    others: int, window: int
) -> None:
    service = make_service()
    for index in range(1, others + 1):
        DirectPeer(service, identity("actor", index)).say_hello()

    (answer,) = DirectPeer(service, identity("actor")).say_hello()

    assert isinstance(answer, Welcome)
    assert answer.window == window


def test_a_peer_of_another_run_is_refused_and_counted() -> None:
    service = make_service()

    (answer,) = DirectPeer(service, identity("actor", run_id="other")).say_hello()

    assert isinstance(answer, Refused)
    assert (answer.expected, answer.got) == ("test-run", "other")
    assert service.counts.refused_hellos == 1


def test_the_older_life_is_told_to_leave() -> None:
    service = make_service()
    old = joined(service, identity("actor", incarnation=1))
    new = DirectPeer(service, identity("actor", incarnation=2))

    new.say_hello()

    (leave,) = [answer for answer in new.answers if answer.routing == old.routing]
    assert isinstance(leave.message, Refused)
    assert "newer actor-0" in leave.message.what
    assert isinstance(old.say(Ping(incarnation=1, question=1))[0], Identify)


def test_a_stranger_is_asked_who_it_is_and_nothing_is_stored() -> None:
    service = make_service()
    stranger = DirectPeer(service, identity("actor"))

    answer = stranger.send_block(make_blocks(1)[0])

    assert answer == Identify(server_incarnation=SERVER_LIFE)
    assert service.buffer.size == 0


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ("actor", sample_request(0)),
        ("actor", SetLimit(samples_per_insert=1.0)),
        ("controller", sample_request(0)),
        ("learner", Ack(sequence=0, window=1)),
    ],
)
def test_a_role_may_not_say_what_is_not_its_own(role: str, message: Message) -> None:
    service = make_service()
    peer = joined(service, identity(role))  # type: ignore[arg-type] # one of the literals

    with pytest.raises(BadMessage, match="role"):
        peer.say(message)


def test_a_learner_may_not_send_blocks() -> None:
    service = make_service()
    learner = joined(service, identity("learner"))

    with pytest.raises(BadMessage, match="step_block from a learner"):
        learner.send_block(make_blocks(1)[0])


def test_a_resent_block_is_acknowledged_again_and_stored_once() -> None:
    service = make_service()
    actor = joined(service, identity("actor"))
    block = make_blocks(1)[0]

    answers = [actor.send_block(block, sequence=0) for _ in range(3)]

    assert answers == [Ack(sequence=0, window=WINDOW)] * 3
    assert service.buffer.size == BLOCK_ITEMS
    assert service.buffer.inserted_blocks_total == 1
    assert service.counts.duplicate_blocks == 2
    assert service.limiter.counts.inserted == BLOCK_ITEMS


def test_an_invalid_block_is_rejected_with_its_reason_and_not_stored() -> None:
    service = make_service()
    actor = joined(service, identity("actor"))
    block = make_blocks(1)[0]

    answer = actor.send_block(replace(block, actions=block.actions + 100))

    assert isinstance(answer, Reject)
    assert answer.reason.startswith("block_action")
    assert service.buffer.size == 0
    assert service.limiter.counts.inserted == 0
    assert service.counts.rejected_blocks == 1
    assert service.counts.bad_messages == {"block_action": 1}


def test_a_block_with_arrays_of_odd_dimensions_is_rejected() -> None:
    service = make_service()
    actor = joined(service, identity("actor"))
    block = make_blocks(1)[0]

    for name in BlockMessage.arrays:
        odd: dict[str, Array] = {name: getattr(block, name)[:1]}
        answer = actor.send_block(replace(block, **odd))
        assert isinstance(answer, Reject), name
        odd = {name: getattr(block, name).reshape(-1, 1)}
        answer = actor.send_block(replace(block, **odd))
        assert isinstance(answer, Reject), name
    assert service.buffer.size == 0


def test_a_block_larger_than_the_buffer_is_rejected() -> None:
    service = make_service(make_limiter(starts=8, capacity=8), capacity=8)
    actor = joined(service, identity("actor"))
    first, second = make_blocks(2)
    large = first if first.num_frames > 0 else second
    doubled = replace(
        large, prev_actions=np.tile(large.prev_actions, 2), priorities=np.tile(large.priorities, 2)
    )

    assert isinstance(actor.send_block(doubled), Reject)


def test_a_block_from_another_life_is_bad() -> None:
    service = make_service()
    actor = joined(service, identity("actor", incarnation=7))
    message = BlockMessage(
        incarnation=6,
        sequence=0,
        env_index=0,
        weight_generation=0,
        weight_version=0,
        stage="1-1",
    )

    with pytest.raises(BadMessage, match="another life"):
        actor.say(message, block_arrays(make_blocks(1)[0]))
