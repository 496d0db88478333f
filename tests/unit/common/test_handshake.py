from __future__ import annotations

import logging

import msgpack
import pytest

from common.codec import decode, encode, seal
from common.errors import ExitCode, ProtocolMismatch
from common.handshake import ServerLink, routing_id
from common.heartbeat import Identity
from common.ids import Incarnation, Role
from common.memory_transport import MemoryNetwork
from common.messages import (
    PROTOCOL_VERSION,
    Ack,
    Hello,
    Identify,
    Message,
    Ping,
    Refused,
    Status,
    Welcome,
)
from common.specs import DataSpec
from tests.fake_clock import FakeClock
from tests.message_factory import EXAMPLES, example_arrays

ENDPOINT = "replay"
SPEC = DataSpec(num_actions=5)


class Conversation:
    """A link and the server's end of its line."""

    def __init__(self, role: Role = "actor") -> None:
        network = MemoryNetwork()
        self.clock = FakeClock()
        self.identity = Identity(run_id="first", role=role, index=2, incarnation=Incarnation(1_234))
        self.routing = routing_id(self.identity)
        self.router = network.router(ENDPOINT)
        dealer = network.dealer(ENDPOINT, self.routing)
        self.link = ServerLink(dealer, ENDPOINT, self.identity, SPEC, clock=self.clock)

    def heard(self) -> list[Message]:
        """What the server has been sent since the last call."""
        messages = []
        while (arrival := self.router.receive(0)) is not None:
            assert arrival[0] == self.routing.encode()
            messages.append(decode(arrival[1]).message)
        return messages

    def answer(self, message: Message) -> Message | None:
        """The server says something and the link reads it."""
        self.router.send(self.routing.encode(), encode(message, example_arrays(message.tag)))
        return self.link.receive(0)

    def welcome(self) -> None:
        self.answer(Welcome(server_incarnation=9, window=4))

    def tick(self, seconds: float = 0.0, *, waiting: bool = False) -> list[Message]:
        self.clock.advance(seconds)
        self.link.maintain(waiting=waiting)
        return self.heard()


HELLO = Hello(
    protocol=PROTOCOL_VERSION,
    run_id="first",
    role="actor",
    peer="actor-2",
    incarnation=1_234,
    spec=SPEC,
)


def ping(question: int) -> Ping:
    return Ping(incarnation=1_234, question=question)


def status(question: int) -> Status:
    return Status(
        server_incarnation=9,
        question=question,
        window=4,
        size=0,
        capacity=1,
        mass=0.0,
        inserted_total=0,
        sampled_total=0,
        samples_per_insert=4.0,
        credit=0.0,
        gate="open",
    )


def test_routing_ids_differ_between_lives() -> None:
    lives = [
        Identity(run_id="x", role="actor", index=0, incarnation=Incarnation(n)) for n in (1, 2)
    ]

    assert [routing_id(life) for life in lives] == ["actor-0.1", "actor-0.2"]


def test_hello_is_said_at_once_and_every_second_until_welcome() -> None:
    talk = Conversation()

    said = [talk.tick(), *(talk.tick(0.25) for _ in range(8))]

    assert said == [[HELLO], [], [], [], [HELLO], [], [], [], [HELLO]]


def test_after_welcome_there_is_silence() -> None:
    talk = Conversation()
    talk.tick()

    talk.welcome()

    assert talk.link.is_welcome
    assert talk.link.server_incarnation == 9
    assert talk.tick(10) == []


def test_pings_are_sent_every_second_and_only_while_waiting() -> None:
    talk = Conversation()
    talk.welcome()

    assert talk.tick(5, waiting=False) == []
    assert talk.tick(waiting=True) == [ping(1)]
    talk.answer(status(1))
    assert [talk.tick(0.5, waiting=True) for _ in range(2)] == [[], [ping(2)]]
    talk.answer(status(2))
    assert talk.tick(3, waiting=False) == []


def test_an_unanswered_question_is_asked_again_after_a_while() -> None:
    talk = Conversation()
    talk.welcome()
    talk.tick(5, waiting=True)

    said = [talk.tick(1, waiting=True) for _ in range(5)]

    assert said == [[], [ping(2)], [], [ping(3)], []]


def test_no_ping_before_welcome() -> None:
    talk = Conversation()

    assert talk.tick(waiting=True) == [HELLO]
    assert talk.tick(1, waiting=True) == [HELLO]


def test_only_the_answer_to_the_last_question_tells_how_far_the_line_is_read() -> None:
    talk = Conversation()
    talk.welcome()
    talk.tick(5, waiting=True)
    asked_s = talk.clock.now_s

    talk.clock.advance(0.5)
    talk.answer(status(0))
    unasked = talk.link.answered_s
    talk.answer(status(1))

    assert unasked < asked_s
    assert talk.link.answered_s == asked_s


def test_identify_leads_to_a_new_hello_at_once() -> None:
    talk = Conversation()
    talk.tick()
    talk.welcome()

    talk.answer(Identify(server_incarnation=10))

    assert not talk.link.is_welcome
    assert talk.tick() == [HELLO]
    assert talk.tick(0.5) == []


def test_a_new_welcome_tells_the_new_life_of_the_server() -> None:
    talk = Conversation()
    talk.welcome()
    talk.answer(Identify(server_incarnation=10))

    talk.answer(Welcome(server_incarnation=10, window=4))

    assert talk.link.is_welcome
    assert talk.link.server_incarnation == 10


def test_a_repeated_welcome_of_the_same_server_is_no_news() -> None:
    talk = Conversation()
    talk.welcome()

    assert talk.answer(Welcome(server_incarnation=9, window=4)) is None
    assert talk.answer(Welcome(server_incarnation=10, window=4)) is not None


def test_a_welcome_after_identify_is_news() -> None:
    talk = Conversation()
    talk.welcome()
    talk.answer(Identify(server_incarnation=9))

    assert talk.answer(Welcome(server_incarnation=9, window=4)) is not None


def test_refused_names_both_sides_and_is_a_configuration_error() -> None:
    talk = Conversation()

    with pytest.raises(ProtocolMismatch) as caught:
        talk.answer(Refused(what="run", expected="second", got="first"))

    text = str(caught.value)
    assert "replay refused actor-2: run: it has second, we have first" in text
    assert caught.value.exit_code is ExitCode.CONFIGURATION


def test_a_server_of_another_version_is_named_with_both_versions() -> None:
    talk = Conversation()
    header = seal(msgpack.packb({"v": 99, "t": "welcome", "f": {}, "a": []}))
    talk.router.send(talk.routing.encode(), [header])

    with pytest.raises(ProtocolMismatch, match=f"version {PROTOCOL_VERSION}, the peer 99"):
        talk.link.receive(0)


def test_status_tells_the_life_of_the_server() -> None:
    talk = Conversation()

    message = talk.answer(EXAMPLES["status"])

    assert message == EXAMPLES["status"]
    assert talk.link.server_incarnation == EXAMPLES["status"].server_incarnation  # type: ignore[attr-defined]  # a Status


def test_arrays_belong_to_the_message_that_was_returned_last() -> None:
    talk = Conversation()

    talk.answer(EXAMPLES["batch_inline"])
    assert list(talk.link.arrays) == list(example_arrays("batch_inline"))

    talk.answer(Ack(sequence=1, window=4))
    assert talk.link.arrays == {}


def test_bad_messages_are_skipped_counted_and_logged_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    talk = Conversation()
    for _ in range(900):
        talk.router.send(talk.routing.encode(), [b"garbage"])

    with caplog.at_level(logging.WARNING):
        message = talk.answer(Ack(sequence=1, window=4))

    assert message == Ack(sequence=1, window=4)
    assert talk.link.bad_messages == {"checksum": 900}
    assert talk.link.bad_answers() == {"answers_bad": 900, "bad_checksum": 900}
    assert len(caplog.records) == 1


def test_nothing_but_bad_messages_is_none() -> None:
    talk = Conversation()
    talk.router.send(talk.routing.encode(), [b"garbage"])

    assert talk.link.receive(0) is None


@pytest.mark.parametrize(
    ("role", "as_role"),
    [("actor", "actor"), ("learner", "learner"), ("controller", "controller")],
)
def test_hello_tells_the_role(role: Role, as_role: str) -> None:
    (hello,) = Conversation(role).tick()

    assert isinstance(hello, Hello)
    assert hello.role == as_role


def test_other_roles_speak_as_controllers() -> None:
    (hello,) = Conversation("launcher").tick()

    assert isinstance(hello, Hello)
    assert hello.role == "controller"


def test_waiting_for_a_server_is_said_every_ten_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    talk = Conversation()

    with caplog.at_level(logging.INFO):
        for _ in range(25):
            talk.tick(1)

    waits = [record for record in caplog.records if "waiting" in record.message]
    assert len(waits) == 2


def test_close_closes_the_line() -> None:
    talk = Conversation()

    talk.link.close()

    assert not talk.router.send(talk.routing.encode(), [b"x"])
