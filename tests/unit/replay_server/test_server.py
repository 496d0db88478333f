from __future__ import annotations

import logging
import re
from dataclasses import replace

import msgpack
import pytest
import torch

from common.codec import Array, encode, seal
from common.errors import ConfigError
from common.heartbeat import HeartbeatWriter
from common.logs import EventFormatter
from common.memory_transport import MemoryNetwork
from common.messages import (
    PROTOCOL_VERSION,
    Ack,
    BatchReply,
    BlockMessage,
    Identify,
    Message,
    Ping,
    Refused,
    SetLimit,
    Status,
    Welcome,
)
from common.phases import PHASES
from common.shared_files import remove_shared
from common.shared_slots import SharedSlots
from replay_server.server import ReplayServer
from tests.block_factory import TINY
from tests.scripted_peers import REPLAY, FakeClock, ScriptedClient, hello, identity
from tests.service_factory import (
    BATCH,
    BLOCK_ITEMS,
    block_arrays,
    make_blocks,
    make_service,
    sample_request,
)

GARBAGE: list[list[bytes]] = [
    [],
    [b""],
    [b"\xc1"],
    [b"\xff" * 100_000],
    [b"GET / HTTP/1.1\r\n\r\n"],
    [b"\x00"] * 30,
    [seal(msgpack.packb({"v": PROTOCOL_VERSION, "t": "no_such_message", "f": {}, "a": []}))],
    *(
        [seal(msgpack.packb({"v": PROTOCOL_VERSION, "t": "ping", "f": fields, "a": []}))]
        for fields in ({"incarnation": -1}, {"incarnation": 2**63})
    ),
    [seal(msgpack.packb([[[[[]]]]]))],
    [msgpack.packb([[[[[]]]]])],
]


def block_message(sequence: int) -> BlockMessage:
    return BlockMessage(
        incarnation=1,
        sequence=sequence,
        env_index=0,
        weight_generation=0,
        weight_version=0,
        stage="1-1",
    )


class Site:
    """A server over memory, with an actor that has been welcomed."""

    def __init__(self) -> None:
        self.network = MemoryNetwork()
        self.service = make_service()
        who = identity("replay_server", incarnation=50)
        heartbeat = HeartbeatWriter(who, None, 3600.0)
        self.clock = FakeClock()
        self.server = ReplayServer(
            self.network.router(REPLAY), self.service, heartbeat, clock=self.clock
        )
        self.actor = self.client("actor")
        self.actor.say_hello()
        assert isinstance(self.replies_to(self.actor)[0], Welcome)
        self.sequence = 0

    def client(self, role: str, index: int = 0, incarnation: int = 1) -> ScriptedClient:
        who = identity(role, index, incarnation=incarnation)  # type: ignore[arg-type] # a literal
        return ScriptedClient(self.network, who, TINY)

    def replies_to(self, client: ScriptedClient) -> list[Message]:
        while self.server.tick():
            pass
        return client.read()

    def send_blocks(self, count: int) -> list[Message]:
        for block in make_blocks(count):
            self.actor.say(block_message(self.sequence), block_arrays(block))
            self.sequence += 1
        return self.replies_to(self.actor)


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.mark.parametrize("frames", GARBAGE)
def test_garbage_is_counted_and_others_do_not_notice(site: Site, frames: list[bytes]) -> None:
    vandal = site.client("actor", 9)
    vandal.say_bytes(frames)

    acks = site.send_blocks(2)

    assert sum(site.service.counts.bad_messages.values()) == 1
    assert [type(ack) for ack in acks] == [Ack, Ack]
    assert vandal.read() == []


def test_a_truncated_block_is_counted_and_the_next_good_one_stored(site: Site) -> None:
    frames = [bytes(frame) for frame in encode(block_message(0), block_arrays(make_blocks(1)[0]))]
    site.actor.say_bytes(frames[:-1])
    site.actor.say_bytes([*frames[:-1], frames[-1][:-1]])
    site.actor.say_bytes([frames[0], frames[1][::-1], *frames[2:]])

    assert site.replies_to(site.actor) == []
    assert sum(site.service.counts.bad_messages.values()) == 3
    assert [type(ack) for ack in site.send_blocks(1)] == [Ack]


def test_the_phases_of_the_server_are_those_of_the_registry(site: Site) -> None:
    site.send_blocks(20)
    learner = site.client("learner")
    learner.say_hello()
    learner.say(sample_request(0))
    site.replies_to(learner)
    site.server.finish(0.0)

    shares = site.service.buffer.shares.shares()

    assert shares.keys() == PHASES["replay"].keys() - {"copy", "update"}


def test_garbage_is_logged_once_a_minute_for_each_peer(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            site.actor.say_bytes([b"\xc1"])
        site.replies_to(site.actor)

    assert len([r for r in caplog.records if r.message == "bad message"]) == 1


def test_the_log_says_once_a_minute_how_full_the_buffer_is(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    formatter = EventFormatter("first", "replay_server", 0)
    with caplog.at_level(logging.INFO):
        site.server._beat()
        site.send_blocks(4)
        for _ in range(3):
            site.server._beat()
            site.clock.advance(40)
        learner = learner_of(site)
        learner.say(sample_request(0))
        site.replies_to(learner)
        site.server.finish(0.0)

    lines = [formatter.format(record) for record in caplog.records if record.msg == "[stat]"]
    fill = 100 * 4 * BLOCK_ITEMS / site.service.buffer.capacity_items
    assert [line.partition("[replay]")[2] for line in lines[:2]] == [
        f"[stat] fill={fill:.1f}% unique=- avg_unique=-"
    ] * 2
    assert re.search(r"\[stat\] fill=\S+% unique=\d+\.\d% avg_unique=\d+\.\d%$", lines[2])
    assert len(lines) == 3


def test_another_protocol_version_is_refused_with_both_numbers(site: Site) -> None:
    stranger = site.client("actor", 3)
    header = {"v": PROTOCOL_VERSION + 1, "t": "hello", "f": {}, "a": []}
    stranger.say_bytes([seal(msgpack.packb(header))])

    (answer,) = site.replies_to(stranger)

    assert isinstance(answer, Refused)
    assert str(PROTOCOL_VERSION) in answer.expected
    assert str(PROTOCOL_VERSION + 1) in answer.got


def test_a_hello_with_other_data_is_refused(site: Site) -> None:
    stranger = site.client("actor", 3)
    stranger.say(hello(stranger.identity, replace(TINY, stack=2)))

    (answer,) = site.replies_to(stranger)

    assert isinstance(answer, Refused)
    assert "'stack': 4" in answer.expected
    assert "'stack': 2" in answer.got


def test_a_stranger_is_asked_who_it_is(site: Site) -> None:
    stranger = site.client("actor", 3)
    stranger.say(Ping(incarnation=1, question=1))

    assert site.replies_to(stranger) == [Identify(server_incarnation=50)]


def test_what_a_role_may_not_say_is_counted(site: Site) -> None:
    site.actor.say(sample_request(0))

    assert site.replies_to(site.actor) == []
    assert site.service.counts.bad_messages == {"role": 1}


def test_the_older_life_is_told_to_leave(site: Site) -> None:
    newer = site.client("actor", incarnation=2)
    newer.say_hello()

    assert [type(answer) for answer in site.replies_to(newer)] == [Welcome]
    assert [type(answer) for answer in site.actor.read()] == [Refused]


def test_a_ratio_that_cannot_work_is_refused_and_the_old_one_stays(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller = site.client("controller")
    controller.say_hello()
    controller.say(SetLimit(samples_per_insert=2.0))
    (_, changed) = site.replies_to(controller)

    def refuse(_: float) -> None:
        raise ConfigError("no such ratio")

    monkeypatch.setattr(site.service.limiter, "change_ratio", refuse)
    controller.say(SetLimit(samples_per_insert=3.0))
    (refused,) = site.replies_to(controller)

    assert isinstance(changed, Status)
    assert changed.samples_per_insert == 2.0
    assert isinstance(refused, Refused)
    assert "no such ratio" in refused.got
    assert site.service.limiter.limit.samples_per_insert == 2.0


def test_an_answer_to_a_peer_that_is_gone_is_counted(site: Site) -> None:
    site.actor.say(Ping(incarnation=1, question=1))
    site.actor._dealer.close()

    site.server.tick()

    assert site.service.counts.unsent_answers == 1


def learner_of(site: Site) -> ScriptedClient:
    learner = site.client("learner")
    learner.say_hello()
    site.replies_to(learner)
    return learner


def test_a_learner_that_waits_is_served_before_the_blocks_behind_the_one_it_needs() -> None:
    site = Site()
    learner = learner_of(site)
    learner.say(sample_request(0))
    site.server.tick()
    for sequence, block in enumerate(make_blocks(8)):
        site.actor.say(block_message(sequence), block_arrays(block))

    site.server.tick()

    (reply,) = learner.read()
    assert isinstance(reply, BatchReply)
    starts = site.service.limiter.limit.min_inserted
    assert starts <= reply.inserted_total < starts + BLOCK_ITEMS
    assert site.service.buffer.inserted_blocks_total == 8


def test_a_batch_in_shared_memory_equals_one_over_the_wire() -> None:
    name = "warpzone-test-server-slots"
    remove_shared(name)
    by_wire, shared = Site(), Site()
    slots = SharedSlots.create(name, 2, BATCH, TINY)
    try:
        fields: dict[str, Array] = {}
        for site, file in ((by_wire, ""), (shared, name)):
            site.send_blocks(4)
            learner = learner_of(site)
            learner.say(sample_request(5, shared_file=file, slot=1))
            site.replies_to(site.actor)
            (received,) = learner.read_received()
            reply = received.message
            assert isinstance(reply, BatchReply)
            assert (reply.tag, reply.slot) == ("batch" if file else "batch_inline", 1)
            fields = fields or received.arrays
        for field, array in fields.items():
            assert torch.equal(getattr(slots.batches[1], field), torch.from_numpy(array.copy()))
    finally:
        remove_shared(name)


def test_a_part_fills_the_first_rows_of_its_slot_and_no_other() -> None:
    name = "warpzone-test-server-parts"
    remove_shared(name)
    site = Site()
    slots = SharedSlots.create(name, 2, BATCH, TINY)
    try:
        site.send_blocks(4)
        learner = learner_of(site)
        slots.batches[1].actions.fill_(-1)
        part = sample_request(5, shared_file=name, slot=1, size=3)
        learner.say(replace(part, slot_rows=BATCH))
        (reply,) = site.replies_to(learner)
    finally:
        remove_shared(name)

    assert reply.tag == "batch"
    assert (slots.batches[1].actions >= 0).tolist() == [True] * 3 + [False] * (BATCH - 3)


def test_a_part_larger_than_its_slot_falls_back_to_the_wire() -> None:
    name = "warpzone-test-server-small-slots"
    remove_shared(name)
    site = Site()
    SharedSlots.create(name, 2, BATCH, TINY)
    try:
        site.send_blocks(4)
        learner = learner_of(site)
        learner.say(replace(sample_request(5, shared_file=name), slot_rows=BATCH - 1))
        (reply,) = site.replies_to(learner)
    finally:
        remove_shared(name)

    assert reply.tag == "batch_inline"


def test_a_slot_beyond_the_file_falls_back_to_the_wire() -> None:
    name = "warpzone-test-server-few-slots"
    remove_shared(name)
    site = Site()
    SharedSlots.create(name, 1, BATCH, TINY)
    try:
        site.send_blocks(4)
        learner = learner_of(site)
        learner.say(sample_request(5, shared_file=name, slot=7))
        (reply,) = site.replies_to(learner)
    finally:
        remove_shared(name)

    assert reply.tag == "batch_inline"
    assert site.service.counts.bad_messages == {"shared_file": 1}


def test_the_server_ends_by_a_signal_only(site: Site) -> None:
    site.send_blocks(1)
    site.server.finish(1.0)

    assert not site.server.is_done
    assert site.service.buffer.size == BLOCK_ITEMS
    site.server.close()
