from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.sink import BlockSink
from common.codec import encode
from common.errors import ProtocolMismatch
from common.handshake import PING_INTERVAL_S, ServerLink
from common.memory_transport import MemoryNetwork
from common.messages import Ack, BlockMessage, Hello, Message, Ping, Refused, Reject
from tests.block_factory import TINY, cut_block, play
from tests.scripted_peers import REPLAY, FakeClock, ScriptedServer, identity

ITEMS = 8
BLOCK = cut_block(play([40], [0], TINY, np.random.default_rng(0)), 0, ITEMS, TINY)
ARRAYS = {name: getattr(BLOCK, name) for name in BlockMessage.arrays}


class Scene:
    """A sink, the server that it talks to, and the time; the server is welcoming from the start."""

    def __init__(self, own_window: int = 4) -> None:
        network = MemoryNetwork()
        self.clock = FakeClock()
        self.server = ScriptedServer(network)
        who = identity("actor")
        dealer = network.dealer(REPLAY, "actor-0.1")
        link = ServerLink(dealer, REPLAY, who, TINY, clock=self.clock)
        self.sink = BlockSink(link, own_window, clock=self.clock)

    def join(self, window: int = 4) -> None:
        self.pump()
        assert isinstance(self.server.read()[0], Hello)
        self.server.welcome(window)
        self.pump()

    def pump(self, after_s: float = 0.001) -> None:
        self.clock.advance(after_s)
        self.sink.pump()

    def submit(self) -> None:
        self.clock.advance(0.001)
        message = BlockMessage(
            incarnation=1,
            sequence=self.sink.next_sequence,
            env_index=0,
            weight_generation=0,
            weight_version=0,
            stage="1-1",
        )
        self.sink.submit(message, encode(message, ARRAYS), ITEMS)

    def submit_allowed(self) -> int:
        before = self.sink.counts.submitted
        while self.sink.may_submit():
            self.submit()
        return self.sink.counts.submitted - before

    def sequences(self) -> list[int]:
        """Blocks that reached the server since it last read."""
        return sequences_in(self.server.read())

    def ack(self, sequence: int, window: int = 4) -> None:
        self.server.say(Ack(sequence=sequence, window=window))


def sequences_in(messages: list[Message]) -> list[int]:
    return [message.sequence for message in messages if isinstance(message, BlockMessage)]


def test_nothing_may_be_submitted_before_the_welcome() -> None:
    scene = Scene()

    scene.pump()

    assert not scene.sink.may_submit()
    assert scene.sink.waits_for() == f"replay server at {REPLAY}"


@pytest.mark.parametrize(("own", "servers", "allowed"), [(4, 4, 4), (2, 4, 2), (4, 1, 1)])
def test_the_smaller_window_is_respected(own: int, servers: int, allowed: int) -> None:
    scene = Scene(own_window=own)
    scene.join(window=servers)

    assert scene.submit_allowed() == allowed
    assert scene.sequences() == list(range(allowed))
    assert scene.sink.waits_for() == "learner to catch up"


def test_an_acknowledgement_makes_room_for_one_more() -> None:
    scene = Scene()
    scene.join()
    scene.submit_allowed()

    scene.sequences()
    scene.ack(0)
    scene.pump()

    assert scene.submit_allowed() == 1
    assert scene.sink.counts.acked == 1
    assert scene.sink.counts.acked_agent_steps == ITEMS


def test_window_zero_pauses_until_a_status_opens_it() -> None:
    scene = Scene()
    scene.join()
    scene.submit()
    scene.sequences()
    scene.ack(0, window=0)
    scene.pump()
    paused = scene.sink.may_submit()

    scene.server.status(window=4)
    scene.pump()

    assert not paused
    assert scene.submit_allowed() == 4


def test_a_waiting_sink_asks_once_a_second() -> None:
    scene = Scene()
    scene.join(window=0)
    asked = 0
    for _ in range(50):
        scene.pump(after_s=0.1)
        asked += sum(isinstance(message, Ping) for message in scene.server.read())
        scene.server.status(window=0)

    assert asked == pytest.approx(5 / PING_INTERVAL_S, abs=1)


def test_a_server_that_does_not_answer_is_named_until_it_does() -> None:
    scene = Scene()
    scene.join(window=0)
    said = []
    for _ in range(6):
        scene.pump(after_s=PING_INTERVAL_S)
        said.append(scene.sink.waits_for())
    scene.server.read()
    scene.server.status(window=0)
    scene.pump()

    silent = f"replay server at {REPLAY}, which does not answer"
    assert said == ["learner to catch up"] * 2 + [silent] * 4
    assert scene.sink.waits_for() == "learner to catch up"


def test_a_rejected_block_is_counted_and_not_sent_again() -> None:
    scene = Scene()
    scene.join()
    scene.submit()
    scene.sequences()

    scene.server.say(Reject(sequence=0, reason="bad", window=4))
    scene.pump()
    scene.server.status()
    scene.pump(after_s=2)

    assert scene.sink.counts.rejected == 1
    assert scene.sink.counts.acked == 0
    assert scene.sequences() == []


def test_a_lost_block_is_resent_after_the_answer_to_a_later_question() -> None:
    scene = Scene()
    scene.join()
    scene.submit()
    scene.submit()
    scene.server.lose()

    scene.pump(after_s=PING_INTERVAL_S)
    questions = scene.server.read()
    scene.server.status()
    scene.pump()

    assert [type(message) for message in questions] == [Ping]
    assert scene.sequences() == [0, 1]
    assert scene.sink.counts.resent == 2


def test_a_status_that_answers_an_earlier_question_resends_nothing() -> None:
    scene = Scene()
    scene.join(window=0)
    scene.pump(after_s=PING_INTERVAL_S)
    scene.server.read()
    scene.server.status(window=4)
    scene.pump()
    scene.submit()

    scene.server.status(window=4)
    scene.pump()

    assert scene.sequences() == [0]
    assert scene.sink.counts.resent == 0


def test_a_status_that_nobody_asked_for_resends_nothing() -> None:
    scene = Scene()
    scene.join()
    scene.submit()
    scene.pump(after_s=PING_INTERVAL_S)

    scene.server.status()
    scene.pump()

    assert scene.sequences() == [0]
    assert scene.sink.counts.resent == 0


def test_a_restarted_server_is_sent_everything_unacknowledged_once() -> None:
    scene = Scene()
    scene.join()
    scene.submit_allowed()
    scene.sequences()
    scene.ack(0)
    scene.pump()

    scene.server.incarnation = 2
    scene.server.identify()
    scene.pump()
    scene.pump()
    heard = scene.server.read()
    scene.server.welcome()
    scene.pump()

    assert [type(message) for message in heard] == [Hello]
    assert scene.sequences() == [1, 2, 3]


def test_answers_to_queued_hellos_resend_nothing() -> None:
    scene = Scene()
    scene.pump()
    scene.pump(after_s=1)
    scene.pump(after_s=1)
    hellos = scene.server.read()
    scene.server.welcome()
    scene.pump()
    scene.submit()
    scene.server.welcome()
    scene.server.welcome()
    scene.pump()

    assert len(hellos) == 3
    assert scene.sequences() == [0]
    assert scene.sink.counts.resent == 0


def test_nothing_is_sent_twice_to_a_server_that_answers() -> None:
    scene = Scene()
    scene.join()
    seen: list[int] = []
    for _ in range(100):
        scene.submit_allowed()
        for message in scene.server.read():
            if isinstance(message, BlockMessage):
                seen.append(message.sequence)
                scene.ack(message.sequence)
            elif isinstance(message, Ping):
                scene.server.status()
        scene.pump(after_s=0.3)

    assert seen == list(range(len(seen)))
    assert len(seen) >= 300
    assert scene.sink.counts.acked == scene.sink.counts.submitted


def test_what_is_not_acknowledged_in_time_is_dropped() -> None:
    scene = Scene()
    scene.join()
    scene.submit_allowed()
    scene.sequences()
    scene.ack(2)
    scene.clock.seconds_per_look = 0.1

    scene.sink.drain(deadline_s=1.0)

    counts = scene.sink.counts
    assert (counts.acked, counts.dropped) == (1, 3)


def test_a_refusal_names_both_sides() -> None:
    scene = Scene()
    scene.pump()
    scene.server.read()
    scene.server.say(Refused(what="run", expected="theirs", got="ours"))

    with pytest.raises(ProtocolMismatch, match=r"actor-0.*theirs.*ours"):
        scene.pump()


def test_a_block_out_of_sequence_is_a_mistake_of_the_caller() -> None:
    scene = Scene()
    scene.join()
    message = BlockMessage(
        incarnation=1,
        sequence=5,
        env_index=0,
        weight_generation=0,
        weight_version=0,
        stage="1-1",
    )

    with pytest.raises(ValueError, match="expected sequence 0, got 5"):
        scene.sink.submit(message, encode(message, ARRAYS), ITEMS)


EVENTS = st.lists(
    st.sampled_from(["submit", "answer", "lose", "reject", "restart", "hold", "second"]),
    max_size=60,
)


@given(EVENTS)
@settings(max_examples=60, deadline=None)
def test_every_block_is_acknowledged_rejected_or_dropped_in_the_end(events: list[str]) -> None:
    """Whatever is lost and whenever the server restarts; stored at least once if acknowledged."""
    scene = Scene()
    scene.join()
    for event in events:
        play_event(scene, event)
        scene.pump(after_s=0.05)
        unsettled = len(scene.sink._unacked)
        assert unsettled <= 4
    scene.server.read()
    scene.clock.seconds_per_look = 0.1
    scene.sink.drain(deadline_s=1.0)

    counts = scene.sink.counts
    assert counts.submitted == counts.acked + counts.rejected + counts.dropped


def play_event(scene: Scene, event: str) -> None:
    if event == "submit" and scene.sink.may_submit():
        scene.submit()
    elif event == "lose":
        scene.server.lose()
    elif event == "second":
        scene.clock.advance(1.0)
    elif event == "restart":
        scene.server.incarnation += 1
        scene.server.identify()
    elif event in ("answer", "reject", "hold"):
        answer_all(scene, event)


def answer_all(scene: Scene, how: str) -> None:
    window = 0 if how == "hold" else 4
    for message in scene.server.read():
        if isinstance(message, BlockMessage) and how == "reject":
            scene.server.say(Reject(sequence=message.sequence, reason="bad", window=window))
        elif isinstance(message, BlockMessage):
            scene.ack(message.sequence, window=window)
        elif isinstance(message, Hello):
            scene.server.welcome(window)
        elif isinstance(message, Ping):
            scene.server.status(window)
