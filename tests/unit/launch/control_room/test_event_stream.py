"""Events of a run are made once for all who look."""

import asyncio
import time
from pathlib import Path

import pytest

from launch.control_room import event_stream
from launch.control_room.event_stream import MAX_EVENTS_PER_S, POLL_S, SharedEvents, StreamCount
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
