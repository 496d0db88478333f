"""Events of the control room: they come, resume and end, for many viewers and deaf ones."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from launch.control_room import event_stream
from launch.control_room.event_stream import StreamCount
from tests.run_folders import beat, make_run, metrics_record, score, write_lines
from tests.served_room import served_room
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

REQUEST = b"GET /api/runs/r/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_run(tmp_path / "runs")
    return tmp_path / "runs"


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    with served_room(folder) as port:
        yield port


def get(port: int, path: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=10.0)


def events_of(answer: httpx.Response) -> Iterator[dict[str, str]]:
    """The events of a stream as they come."""
    fields: dict[str, str] = {}
    for line in answer.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields
            fields = {}


def open_events(port: int, **headers: str) -> httpx.Client:
    return httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=10.0)


def test_events_come_when_files_grow_and_resume_where_they_were(port: int, folder: Path) -> None:
    with open_events(port) as client, client.stream("GET", "/api/runs/r/events") as stream:
        first = next(events_of(stream))
    lines = [metrics_record(9_000)]
    write_lines(folder / "r" / "metrics.jsonl", lines)
    resumed = {"Last-Event-ID": first["id"]}
    with open_events(port, **resumed) as client, client.stream("GET", "/api/runs/r/events") as s:
        second = next(events_of(s))

    assert first["event"] == "state"
    assert second["id"] != first["id"]
    assert json.loads(second["data"])["metrics"]["global_step"] == 9_000


def test_odd_numbers_in_files_of_a_run_leave_answers_and_events_readable(
    port: int, folder: Path
) -> None:
    odd = {"loss_total": float("nan"), "q_mean": float("inf"), "env_mean_x_pos": 10**400}
    run = folder / "r"
    write_lines(run / "metrics.jsonl", [metrics_record(9_000, **odd)])
    write_lines(run / "eval.jsonl", [score(9_000, x_p90=float("nan"))])
    write_lines(run / "heartbeats" / "actor-0.jsonl", [beat("actor-0", cpu_percent=10**400)])
    write_lines(run / "controls.jsonl", [{"who": "me", "value": float("inf")}])
    write_lines(run / "live" / "actor-0.json", [{"x": float("nan"), "q_values": [float("nan")]}])

    with open_events(port) as client, client.stream("GET", "/api/runs/r/events") as stream:
        event = next(events_of(stream))["data"]
    paths = ("state", "controls", "live?peers=actor-0", "curves", "levels/1-1")
    answers = [get(port, f"/api/runs/r/{path}") for path in paths]

    assert [answer.status_code for answer in answers] == [200] * len(paths)
    for text in (event, *(answer.text for answer in answers)):
        json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert json.loads(event)["metrics"]["loss_total"] is None
    assert get(port, "/metrics").status_code == 200


def test_an_event_that_was_seen_is_not_sent_again(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    for peer in ("learner-0", "actor-0", "actor-1"):
        # Long ended: nothing about it changes any more.
        paths.process_heartbeat(peer).write_text(
            json.dumps(beat(peer, pid=2**22, time=1_000.0)) + "\n", encoding="utf-8"
        )
    with served_room(tmp_path) as port:
        with open_events(port) as client, client.stream("GET", "/api/runs/r/events") as stream:
            first = next(events_of(stream))
        headers = {"Last-Event-ID": first["id"]}
        with (
            httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=2.0) as client,
            client.stream("GET", "/api/runs/r/events", headers=headers) as stream,
            pytest.raises(httpx.ReadTimeout),
        ):
            next(events_of(stream))


def test_too_many_viewers_are_told_to_come_later(folder: Path) -> None:
    streams = StreamCount(limit=3)
    with served_room(folder, streams=streams) as port:
        viewers = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
        for viewer in viewers:
            viewer.sendall(REQUEST)
        wait_until("three viewers", lambda: streams.open == 3)

        refused = get(port, "/api/runs/r/events")
        for viewer in viewers:
            viewer.close()
        wait_until("they are gone", lambda: streams.open == 0)

        assert (refused.status_code, refused.headers["retry-after"]) == (503, "10")


def test_a_client_that_stops_reading_is_let_go(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "SEND_DEADLINE_S", 1.0)
    monkeypatch.setattr(event_stream, "POLL_S", 0.0)
    monkeypatch.setattr(
        event_stream.SharedEvents, "look", lambda _: (str(time.monotonic()), b"x" * 2**20)
    )
    streams = StreamCount()
    with served_room(folder, streams=streams) as port:
        with socket.create_connection(("127.0.0.1", port)) as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            deaf.sendall(REQUEST)
            wait_until("it is listened to", lambda: streams.open == 1)
            wait_until("it is let go", lambda: streams.open == 0)
        assert get(port, "/api/runs").status_code == 200


def test_the_end_of_the_room_ends_streams_of_a_crowd_in_order(folder: Path) -> None:
    streams = StreamCount(limit=1_000)
    with served_room(folder, streams=streams) as port:
        viewer = socket.create_connection(("127.0.0.1", port), timeout=10.0)
        # As many as make it sleep for two seconds, longer than the end of the room may take.
        streams.open += 199
        viewer.sendall(REQUEST)
        said = b""
        while b"event: state" not in said:
            said += viewer.recv(65_536)

    with viewer:
        while piece := viewer.recv(65_536):
            said += piece

    assert said.endswith(b"\r\n0\r\n\r\n")


def test_a_run_that_is_deleted_ends_its_events_and_is_not_found(port: int, folder: Path) -> None:
    with open_events(port) as client, client.stream("GET", "/api/runs/r/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        shutil.rmtree(folder / "r")
        ended = [line for line in lines if line.startswith("event: gone")]

    assert ended == ["event: gone"]
    for path in ("state", "curves", "events", "live", "levels", "controls", "log/actor-0"):
        assert get(port, f"/api/runs/r/{path}").status_code == 404
    assert get(port, "/api/runs").json()["runs"] == []
    assert not (folder / "r").exists()
