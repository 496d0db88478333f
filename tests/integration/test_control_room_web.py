"""The web cases of a hostile network against the real server: nothing leaks, nothing breaks."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from launch.control_room import connections, library
from launch.control_room.run_reader import RunReader
from launch.control_room.security import Rules
from tests.run_folders import beat, end_run, make_run, write_lines
from tests.served_room import raw_request, served_room, status_of

pytestmark = pytest.mark.integration

TOKEN = "a-token-of-many-characters"  # noqa: S105 - of this test
SECRET = "root:x:0:0"  # noqa: S105 - what a traversal would show


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_run(tmp_path / "runs")
    (tmp_path / "secret").write_text(SECRET, encoding="utf-8")
    return tmp_path / "runs"


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    with served_room(folder) as port:
        yield port


def get(port: int, path: str, **headers: str) -> httpx.Response:
    return httpx.get(f"http://127.0.0.1:{port}{path}", headers=headers, timeout=10.0)


def head(path: str = "/", method: str = "GET", host: str = "localhost", more: str = "") -> bytes:
    text = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
    return text.encode("latin-1")


def test_the_page_and_every_answer_come_with_their_headers(port: int) -> None:
    for path in ("/", "/js/app.js", "/api/runs", "/api/runs/r/state", "/metrics", "/nowhere"):
        answer = get(port, path)

        assert answer.status_code == (404 if path == "/nowhere" else 200)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers
        assert "set-cookie" not in answer.headers


def test_a_run_can_be_read_whole(port: int) -> None:
    assert get(port, "/api/runs").json()["runs"][0]["name"] == "r"
    assert get(port, "/api/runs/r/state").json()["metrics"]["global_step"] == 1_900
    assert get(port, "/api/runs/r/curves?panels=loss").json()["loss"]["x"][-1] == 1_900
    assert get(port, "/api/runs/r/levels").json() == {"stages": []}
    assert get(port, "/api/runs/r/log/actor-0").json() == {"lines": []}
    assert get(port, "/api/runs/r/controls").json()["allowed"] is False
    assert 'warpzone_global_step{run="r"} 1900' in get(port, "/metrics").text


def test_prometheus_gets_runs_that_go_on_and_others_are_not_opened_for_it(
    port: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []

    class CountedReader(RunReader):
        def _forget(self) -> None:
            opened.append(self.paths.root.name)
            super()._forget()

    monkeypatch.setattr(library, "RunReader", CountedReader)
    names = [f"ended{number}" for number in range(library.MAX_READERS + 1)]
    for name in names:
        end_run(make_run(folder, name, rows=1))
    get(port, f"/api/runs/{names[0]}/state")

    pages = [get(port, "/metrics").text for _ in range(2)]
    get(port, f"/api/runs/{names[0]}/state")

    assert opened == [names[0], "r"]
    assert all('run="r"' in page and 'run="ended' not in page for page in pages)


def test_a_run_that_cannot_be_read_hides_no_other_from_prometheus(
    port: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = RunReader.look

    def odd_look(reader: RunReader) -> None:
        if reader.paths.root.name == "odd":
            raise ValueError("an odd line")
        look(reader)

    monkeypatch.setattr(RunReader, "look", odd_look)
    make_run(folder, "odd")

    page = get(port, "/metrics")

    assert page.status_code == 200
    assert 'run="r"' in page.text
    assert 'run="odd"' not in page.text


def test_head_is_get_without_the_content(port: int) -> None:
    answer = httpx.head(f"http://127.0.0.1:{port}/api/runs")

    assert (answer.status_code, answer.content) == (200, b"")


def test_an_unchanged_page_is_not_sent_again(port: int) -> None:
    tag = get(port, "/js/app.js").headers["etag"]

    assert get(port, "/js/app.js", **{"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "/../../secret",
        "/../../../../../../etc/passwd",
        "/js/../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/secret",
        "/%2e%2e%2f%2e%2e%2fsecret",
        "/%252e%252e/%252e%252e/secret",
        "/..%5c..%5csecret",
        "/\\..\\..\\secret",
        "/api/runs/..%2f..%2fsecret/state",
        "/api/runs/%2e%2e/state",
        "/api/runs/r%00/state",
        "/api/runs/r/log/..%2f..%2f..%2fsecret",
        "/api/runs/r/log/%2e%2e",
        "/api/runs/r/levels/..%2fsecret/picture",
        "/api/runs/r/live/..%2f..%2fsecret/frame",
        "/api/runs/r/films/..%2f..%2f..%2fsecret",
        "/api/runs/r/films/../../../secret",
        "/api/runs/r/films/eval-00000000100-best.mp4%2f..%2f..%2f..%2f..%2fsecret",
        "/api/runs/r/films/eval-00000000100-best.mp4%00",
        "/api/runs/r/films/config.json",
        "//etc/passwd",
        "/api/runs/r/state/../../../../secret",
    ],
)
def test_no_address_leads_out_of_the_runs(port: int, path: str) -> None:
    answer = raw_request(port, head(path))

    assert status_of(answer) in (400, 404)
    assert SECRET.encode() not in answer
    assert b"root:" not in answer


def test_links_in_a_run_are_not_followed(port: int, folder: Path) -> None:
    secret = folder.parent / "secret"
    film = "eval-00000000100-best.mp4"
    for name in ("live/actor-0.jpg", "maps/1-1.png", "logs/actor-0.log", f"videos/{film}"):
        path = folder / "r" / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(secret)
    record = {"area": 1, "x0": 0, "width": 1, "height": 1}
    (folder / "r/maps/1-1.json").write_text(json.dumps(record), encoding="utf-8")

    for rest in ("live/actor-0/frame", "levels/1-1/picture", "log/actor-0", f"films/{film}"):
        assert SECRET not in get(port, f"/api/runs/r/{rest}").text


def test_a_film_is_served_whole_and_in_parts(port: int, folder: Path) -> None:
    videos = folder / "r" / "videos"
    videos.mkdir()
    (videos / "eval-00000000100-best.mp4").write_bytes(b"0123456789")
    path = "/api/runs/r/films/eval-00000000100-best.mp4"

    whole, part = get(port, path), get(port, path, Range="bytes=2-4")
    beyond, missing = get(port, path, Range="bytes=10-"), get(port, path.replace("best", "worst"))

    assert (whole.status_code, whole.content) == (200, b"0123456789")
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["accept-ranges"] == "bytes"
    assert "media-src 'self'" in whole.headers["content-security-policy"]
    assert (part.status_code, part.content) == (206, b"234")
    assert part.headers["content-range"] == "bytes 2-4/10"
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, "bytes */10")
    assert missing.status_code == 404
    assert [film["which"] for film in get(port, "/api/runs/r/state").json()["films"]] == ["best"]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        head(host="evil.com"),
        head(host="localhost."),
        head(host="127.0.0.1.nip.io"),
        head(more="Host: evil.com\r\n"),
        b"GET http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\nConnection: close\r\n\r\n",
    ],
)
def test_other_hosts_and_none_are_refused(port: int, request_bytes: bytes) -> None:
    answer = raw_request(port, request_bytes)

    assert status_of(answer) in (400, 421)
    assert b"<html" not in answer


def test_http_1_0_and_ipv6_literals_are_served(port: int) -> None:
    assert status_of(raw_request(port, b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")) == 200
    assert status_of(raw_request(port, head(host="[::1]"))) == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"])
def test_only_reading_is_answered(port: int, method: str) -> None:
    assert status_of(raw_request(port, head("/api/runs/r/control", method))) == 405


def test_other_sites_get_no_events_and_no_websocket(port: int) -> None:
    upgrade = "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n"

    foreign = get(port, "/api/runs/r/events", Origin="http://evil.com")
    socket_answer = raw_request(port, head("/api/runs", more=upgrade))

    assert foreign.status_code == 403
    assert status_of(socket_answer) == 200


@pytest.mark.parametrize(
    "request_bytes",
    [
        head("/" + "a" * 10_000),
        head(more=f"X: {'a' * 100_000}\r\n"),
        head(more="".join(f"X{n}: {'b' * 100}\r\n" for n in range(1_000))),
        b"\x00\x01\x02 garbage\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        head(more="Content-Length: -1\r\n"),
        head(more="Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"),
    ],
)
def test_odd_requests_are_refused_and_the_next_is_served(port: int, request_bytes: bytes) -> None:
    assert status_of(raw_request(port, request_bytes, 15.0)) in (0, 400, 414, 431, 505)
    assert get(port, "/api/runs").status_code == 200


def test_what_a_client_accepts_makes_no_bomb(port: int) -> None:
    answer = get(port, "/api/runs", **{"Accept-Encoding": "gzip, br, deflate, zstd"})

    assert "content-encoding" not in answer.headers


def test_a_slow_client_is_let_go_and_holds_up_nobody(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_DEADLINE_S", 0.5)
    slow = [socket.create_connection(("127.0.0.1", port), timeout=10.0) for _ in range(50)]
    for connection in slow:
        connection.sendall(b"GET / HT")

    assert get(port, "/api/runs").status_code == 200
    assert [connection.recv(100) for connection in slow] == [b""] * 50
    for connection in slow:
        connection.close()


def test_a_later_request_has_no_more_time_for_its_head(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_DEADLINE_S", 0.5)
    whole = b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    together, apart = (socket.create_connection(("127.0.0.1", port), timeout=10.0) for _ in "ab")
    with together, apart:
        together.sendall(whole + b"GET / HT")
        apart.sendall(whole)
        first = [connection.recv(4_096) for connection in (together, apart)]
        apart.sendall(b"GET / HT")

        assert [status_of(answer) for answer in first] == [200, 200]
        assert [together.recv(100), apart.recv(100)] == [b"", b""]


def test_a_silent_connection_may_wait_for_its_next_request(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_DEADLINE_S", 0.2)
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=10.0) as client:
        sockets = []
        for _ in range(2):
            answer = client.get("/api/runs")
            stream = answer.extensions["network_stream"]
            sockets.append(stream.get_extra_info("client_addr"))
            time.sleep(0.4)

    assert sockets[0] == sockets[1]


def test_missing_torn_and_huge_files_behind_it_are_no_fault(port: int, folder: Path) -> None:
    run = folder / "r"
    (run / "config.json").write_bytes(b'{"settings"')
    os.truncate(run / "metrics.jsonl", (run / "metrics.jsonl").stat().st_size - 7)
    with (run / "eval.jsonl").open("ab") as file:
        file.write(b"[" * 1_000_000)
    (run / "episodes.jsonl").touch()
    os.truncate(run / "episodes.jsonl", 2**31)

    state = get(port, "/api/runs/r/state")

    assert state.status_code == 200
    assert state.json()["metrics"]["global_step"] == 1_800


def test_html_in_names_stays_data(port: int, folder: Path) -> None:
    evil = "<img src=x onerror=alert(1)>"
    (folder / evil).mkdir()
    (folder / evil / "metrics.jsonl").touch()
    path = folder / "r" / "heartbeats" / "actor-0.jsonl"
    write_lines(path, [beat("actor-0", state=evil)])

    runs, state = get(port, "/api/runs"), get(port, "/api/runs/r/state")

    assert evil not in runs.text
    assert state.headers["content-type"] == "application/json"


def test_the_token_guards_all_data_beyond_this_machine_and_is_never_logged(
    folder: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    rules = Rules(host="192.0.2.1", token=TOKEN)
    with served_room(folder, rules) as port:
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        for path in ("/api/runs", "/api/runs/r/state", "/metrics", "/api/runs/r/controls"):
            assert get(port, path).status_code == 401
            assert get(port, path, Authorization="Bearer wrong").status_code == 401
            assert get(port, f"{path}?token={TOKEN}").status_code == 401
            assert get(port, path, **bearer).status_code == 200
        assert get(port, "/").status_code == 200

    output = capfd.readouterr()
    assert TOKEN not in caplog.text + output.out + output.err


def test_controls_refuse_what_is_not_a_small_json_request(folder: Path) -> None:
    rules = Rules(token=TOKEN, allow_control=True)
    with served_room(folder, rules) as port:
        url = f"http://127.0.0.1:{port}/api/runs/r/control"
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        json_type = {**bearer, "Content-Type": "application/json"}

        assert httpx.post(url, json={"name": "stop"}).status_code == 401
        assert httpx.post(url, data={"name": "stop"}, headers=bearer).status_code == 415
        assert httpx.post(url, content=b"x" * 10_000, headers=json_type).status_code == 413
        assert httpx.post(url, content=b"{", headers=json_type).status_code == 400
        # No learner answers here.
        refused = httpx.post(
            url, json={"name": "stop", "who": "viewer"}, headers=bearer, timeout=30
        )

    assert (refused.status_code, "is the run going on?" in refused.text) == (504, True)
