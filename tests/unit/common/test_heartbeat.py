from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.channels import Frames
from common.codec import decode
from common.heartbeat import HeartbeatWriter, Identity
from common.host import this_host
from common.ids import Incarnation
from common.jsonl import read_jsonl
from common.messages import Heartbeat
from tests.fake_clock import FakeClock
from tests.markdown_tables import DOCS, table_headed

IDENTITY = Identity(run_id="first", role="actor", index=3, incarnation=Incarnation(77))
INTERVAL_S = 5.0


class FakePusher:
    def __init__(self) -> None:
        self.sent: list[Frames] = []
        self.is_full = False

    def send(self, frames: Frames) -> bool:
        if not self.is_full:
            self.sent.append(frames)
        return not self.is_full

    def close(self) -> None:
        """Nothing to release."""


class Fixture:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.clock = FakeClock()
        self.pusher = FakePusher()
        self.writer = HeartbeatWriter(
            IDENTITY, path, INTERVAL_S, pusher=self.pusher, clock=self.clock
        )


@pytest.fixture
def heart(tmp_path: Path) -> Iterator[Fixture]:
    fixture = Fixture(tmp_path / "heartbeats" / "actor-3.jsonl")
    yield fixture
    fixture.writer.close()


def test_a_beat_says_who_and_how_far(heart: Fixture) -> None:
    heart.clock.advance(10)

    record = heart.writer.beat(50, "playing", {"blocks_acked": 4})

    expected = {
        "role": "actor",
        "index": 3,
        "pid": os.getpid(),
        "host": this_host(),
        "incarnation": 77,
        "uptime_s": 10.0,
        "state": "playing",
        "progress": 50,
        "progress_per_s": 5.0,
        "blocks_acked": 4,
    }
    assert {name: record[name] for name in expected} == expected


def test_vital_signs_are_those_of_this_process(heart: Fixture) -> None:
    record = heart.writer.beat(0, "starting")

    numbers = [record[name] for name in ("cpu_percent", "rss_mb", "threads", "open_files", "time")]
    assert all(isinstance(number, int | float) for number in numbers)
    assert isinstance(record["rss_mb"], float)
    assert 1 < record["rss_mb"] < 100_000


def test_the_fields_are_those_of_the_metrics_page(heart: Fixture) -> None:
    documented = [row[0].strip("`") for row in table_headed(DOCS / "metrics.md", "field", "unit")]

    assert list(heart.writer.beat(0, "starting")) == documented


def test_one_line_per_beat(heart: Fixture) -> None:
    records = [heart.writer.beat(progress, "playing") for progress in range(3)]

    assert list(read_jsonl(heart.path)) == records
    assert heart.path.read_bytes().count(b"\n") == 3


def test_a_line_is_short_enough_to_be_written_at_once(heart: Fixture) -> None:
    heart.writer.beat(2**40, "waiting for " + "x" * 400, {f"share_{n}": 0.1234 for n in range(60)})

    assert heart.path.stat().st_size < 4096


def test_it_is_due_once_per_interval(heart: Fixture) -> None:
    due = []
    for _ in range(4):
        due.append(heart.writer.due())
        if due[-1]:
            heart.writer.beat(0, "playing")
        heart.clock.advance(INTERVAL_S / 2)

    assert due == [False, False, True, False]


def test_progress_per_second_is_that_of_the_interval(heart: Fixture) -> None:
    heart.clock.advance(2)
    heart.writer.beat(100, "playing")
    heart.clock.advance(4)

    assert heart.writer.beat(120, "playing")["progress_per_s"] == 5.0


def test_two_beats_at_one_instant_do_not_divide_by_zero(heart: Fixture) -> None:
    heart.writer.beat(0, "playing")

    assert heart.writer.beat(0, "playing")["progress_per_s"] == 0


def test_the_learner_is_sent_the_same_record(heart: Fixture) -> None:
    record = heart.writer.beat(7, "playing", {"max_x": 40, "weight_version": None})

    (frames,) = heart.pusher.sent
    expected = Heartbeat(run_id="first", peer="actor-3", record=record)
    assert decode([bytes(frame) for frame in frames]).message == expected


def test_a_full_queue_is_counted_and_the_file_still_written(heart: Fixture) -> None:
    heart.pusher.is_full = True

    heart.writer.beat(1, "playing")
    heart.writer.beat(2, "playing")

    assert heart.writer.unsent == 2
    assert len(list(read_jsonl(heart.path))) == 2


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite_become_null(heart: Fixture, odd: float) -> None:
    record = heart.writer.beat(1, "training", {"loss": odd, "fine": 1.5})

    assert (record["loss"], record["fine"]) == (None, 1.5)
    assert list(read_jsonl(heart.path)) == [record]


def test_a_full_disk_does_not_stop_the_process() -> None:
    writer = HeartbeatWriter(IDENTITY, Path("/dev/full"), INTERVAL_S)

    assert writer.beat(1, "playing")["progress"] == 1
    writer.close()


def test_file_and_sending_are_both_optional() -> None:
    writer = HeartbeatWriter(IDENTITY, None, INTERVAL_S)

    assert writer.beat(1, "playing")["progress"] == 1
    writer.close()
