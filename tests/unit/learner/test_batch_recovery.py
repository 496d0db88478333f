from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from common.handshake import PING_INTERVAL_S
from common.messages import (
    Hello,
    Ping,
    SampleRequest,
)
from tests.batch_scene import BATCH, BatchScene, K
from tests.learner_factory import random_batch


def test_a_new_server_life_is_asked_again_for_everything_unanswered() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    scene.reply(random_batch(BATCH))
    held = scene.source.next(0)
    scene.waiting.clear()

    scene.server.incarnation = 2
    scene.server.identify()
    scene.source.next(0)
    scene.source.next(0)
    hellos = scene.listen()
    scene.server.welcome()
    scene.source.next(0)
    scene.source.next(0)
    scene.listen()

    assert held is not None
    assert [type(message) for message in hellos] == [Hello]
    # The slot that is being trained on is not among them.
    assert sorted(request.slot for request in scene.waiting) == [1, 2]
    assert {request.request_id for request in scene.waiting} == {3, 4}


def test_an_answer_of_the_old_server_life_is_ignored() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    scene.server.incarnation = 2
    scene.server.identify()
    scene.source.next(0)
    scene.server.welcome()
    scene.source.next(0)
    scene.reply(random_batch(BATCH))

    assert scene.source.next(0) is None


def test_answers_to_queued_hellos_ask_for_nothing_twice() -> None:
    scene = BatchScene()
    scene.join()
    for _ in range(5):
        scene.server.welcome()
        scene.source.next(0)
        scene.listen()

    assert len(scene.waiting) == K


def ask_and_answer(scene: BatchScene, gate: str) -> None:
    scene.clock.advance(PING_INTERVAL_S)
    scene.source.next(0)
    assert any(isinstance(message, Ping) for message in scene.listen())
    scene.server.status(gate=gate)
    scene.source.next(0)
    scene.source.next(0)
    scene.listen()


def test_requests_whose_answers_were_lost_are_asked_again() -> None:
    scene = BatchScene()
    scene.join()
    scene.listen()
    scene.waiting.clear()

    for _ in range(3):
        ask_and_answer(scene, gate="open")

    assert sorted(request.slot for request in scene.waiting[:K]) == [0, 1, 2]
    assert {request.request_id for request in scene.waiting[:K]} == {3, 4, 5}


def test_requests_that_wait_for_actors_are_not_asked_again() -> None:
    scene = BatchScene()
    scene.join()
    for _ in range(5):
        ask_and_answer(scene, gate="wait_for_actors")

    assert len(scene.waiting) == K
    assert "actors" in scene.source.waits_for()


EVENTS = st.lists(
    st.sampled_from(["next", "release", "reply", "restart", "lose", "second"]), max_size=60
)


@given(EVENTS)
@settings(max_examples=60, deadline=None)
def test_a_slot_is_never_asked_for_while_the_learner_holds_it(events: list[str]) -> None:
    scene = BatchScene()
    scene.join()
    held = []
    for event in events:
        if event == "next" and (ready := scene.source.next(0)) is not None:
            held.append(ready)
        elif event == "release" and held:
            scene.source.release(held.pop(0))
        else:
            serve(scene, event)
        slots = {ready.slot for ready in held}
        asked = [m for m in scene.listen() if isinstance(m, SampleRequest)]
        assert len(slots) == len(held)
        assert slots.isdisjoint(request.slot for request in asked)
        assert len(slots) + len(scene.source.line.requests) <= K


def serve(scene: BatchScene, event: str) -> None:
    messages = scene.listen()
    if any(isinstance(message, Hello) for message in messages):
        scene.server.welcome()
    if any(isinstance(message, Ping) for message in messages):
        scene.server.status()
    if event == "reply" and scene.waiting:
        scene.reply(random_batch(BATCH))
    elif event == "lose":
        scene.waiting.clear()
    elif event == "second":
        scene.clock.advance(1.0)
    elif event == "restart":
        scene.server.incarnation += 1
        scene.waiting.clear()
        scene.server.identify()
