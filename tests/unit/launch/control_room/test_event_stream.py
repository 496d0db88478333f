"""Events of a run are made once for all who look."""

import asyncio
import logging
import time
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest

from launch.control_room import event_stream
from launch.control_room.event_stream import (
    MAX_EVENTS_PER_S,
    POLL_S,
    EventStream,
    SharedEvents,
    StreamCount,
)
from launch.control_room.run_reader import RunReader
from tests.run_folders import make_run

VIEWERS = 50


class SlowReader(RunReader):
    """Counts looks, each of which takes a while."""

    looks = 0
    takes_s = 0.05

    def look(self) -> None:
        self.looks += 1
        time.sleep(self.takes_s)
        self.revision += 1


@pytest.fixture
def reader(tmp_path: Path) -> SlowReader:
    return SlowReader(make_run(tmp_path))


def test_one_look_serves_all_who_ask_at_a_time(reader: SlowReader) -> None:
    events = SharedEvents(reader, "life")

    async def ask() -> list[tuple[str, bytes]]:
        together = await asyncio.gather(*(events.newest() for _ in range(VIEWERS)))
        return [*together, await events.newest()]

    answers = asyncio.run(ask())
    assert reader.looks == 1
    assert {event_id for event_id, _ in answers} == {"life-1"}


def test_who_asks_later_gets_a_new_look(
    reader: SlowReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "POLL_S", 0.0)
    events = SharedEvents(reader, "life")

    async def ask() -> list[str]:
        return [(await events.newest())[0] for _ in range(3)]

    assert asyncio.run(ask()) == ["life-1", "life-2", "life-3"]


def test_a_viewer_who_leaves_takes_the_look_from_nobody(reader: SlowReader) -> None:
    events = SharedEvents(reader, "life")

    async def ask() -> str:
        leaving = asyncio.ensure_future(events.newest())
        staying = asyncio.ensure_future(events.newest())
        await asyncio.sleep(reader.takes_s / 5)
        leaving.cancel()
        return (await staying)[0]

    assert asyncio.run(ask()) == "life-1"
    assert reader.looks == 1


@pytest.mark.parametrize("viewers", [1, 40, 100, 200])
def test_a_crowd_is_told_less_often_and_no_more_in_all(viewers: int) -> None:
    streams = StreamCount()
    streams.open = viewers

    assert streams.pause_s >= POLL_S
    assert viewers / streams.pause_s <= MAX_EVENTS_PER_S


class FailingReader(RunReader):
    """One look succeeds, the next fails, and so on."""

    looks = 0
    error: Exception = OSError("the disk is away")

    def look(self) -> None:
        self.looks += 1
        if self.looks % 2:
            self.revision += 1
        else:
            raise self.error


class Listener:
    """A viewer that reads everything and never leaves."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    async def receive(self) -> dict[str, Any]:
        return await asyncio.Future()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.heard.append(message.get("body", b""))

    @property
    def events(self) -> int:
        return sum(b"event: state" in piece for piece in self.heard)


async def listened(
    events: SharedEvents, streams: StreamCount, listeners: list[Listener], seconds: float
) -> int:
    """Streams that go on after so many seconds; then the control room ends."""
    tasks = [
        asyncio.ensure_future(
            EventStream(events, streams, "", lambda: True)({}, one.receive, one.send)
        )
        for one in listeners
    ]
    await asyncio.sleep(seconds)
    going_on = sum(not task.done() for task in tasks)
    streams.ending.set()
    await asyncio.wait_for(asyncio.gather(*tasks), 5.0)
    return going_on


@pytest.mark.parametrize("error", [OSError("the disk is away"), ValueError("an odd line")])
def test_a_look_that_fails_ends_no_stream_and_is_told_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    monkeypatch.setattr(event_stream, "POLL_S", 0.01)
    reader = FailingReader(make_run(tmp_path))
    reader.error = error
    listeners = [Listener(), Listener()]

    with caplog.at_level(logging.WARNING):
        going_on = asyncio.run(
            listened(SharedEvents(reader, "life"), StreamCount(), listeners, 0.4)
        )

    assert going_on == 2
    assert reader.looks > 4
    assert min(one.events for one in listeners) >= 2
    assert caplog.messages == ["run cannot be read"]


def test_who_comes_while_no_look_succeeds_waits_for_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "POLL_S", 0.01)
    reader, listener = FailingReader(make_run(tmp_path)), Listener()
    reader.looks = 1

    asyncio.run(listened(SharedEvents(reader, "life"), StreamCount(), [listener], 0.4))

    assert listener.events >= 1


@pytest.mark.parametrize(("others", "asks"), [(0, range(5, 1_000)), (100, range(1, 2))])
def test_a_stream_among_many_asks_less_often(
    reader: SlowReader, monkeypatch: pytest.MonkeyPatch, others: int, asks: range
) -> None:
    monkeypatch.setattr(event_stream, "POLL_S", 0.01)
    reader.takes_s = 0.0
    streams = StreamCount()
    streams.open = others

    asyncio.run(listened(SharedEvents(reader, "life"), streams, [Listener()], 0.5))

    assert reader.looks in asks
