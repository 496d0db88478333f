"""The control room as a process: it tells its address, ends quietly, and ends with a run."""

from __future__ import annotations

import io
import os
import signal
import socket
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from actor.main import ACTOR_NICENESS
from launch.room_process import LOW_PRIORITY, room_beside
from tests.launched_run import LaunchedRun
from tests.processes import address_in, address_line, end, processes_mentioning, run, start
from tests.run_folders import make_run
from tests.served_room import raw_request, status_of
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

TOKEN = "a-token-of-many-characters"  # noqa: S105 - of this test


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_without_a_word(tmp_path: Path, number: signal.Signals, code: int) -> None:
    make_run(tmp_path)
    process = start("launch/dashboard.py", str(tmp_path), "--port", "0")
    try:
        address = address_in(process.stdout)
        assert httpx.get(f"{address}/api/runs", timeout=20.0).status_code == 200
        process.send_signal(number)
        output, _ = process.communicate(timeout=20)
    finally:
        end(process)

    assert (process.returncode, output) == (code, "")


def test_the_address_that_is_printed_opens_where_it_listens_everywhere(tmp_path: Path) -> None:
    make_run(tmp_path)
    words = ("launch/dashboard.py", str(tmp_path), "--host", "0.0.0.0", "--port", "0")  # noqa: S104 - with a token
    process = start(*words, env={"WARPZONE_DASHBOARD_TOKEN": TOKEN})
    try:
        host, _, port = address_in(process.stdout).removeprefix("http://").rpartition(":")
        # Whether this machine's name leads to it is up to its name server; the name must be served.
        url, told = f"http://127.0.0.1:{port}/", {"Host": f"{host}:{port}"}
        opened = httpx.get(url, headers=told, timeout=20.0)
        strange = httpx.get(url, headers={"Host": f"strange.{host}:{port}"}, timeout=20.0)
    finally:
        end(process)

    assert host == socket.gethostname().lower()
    assert (opened.status_code, strange.status_code) == (200, 421)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_viewers_and_bad_requests_leave_no_words_behind(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    make_run(tmp_path)
    process = start("launch/dashboard.py", str(tmp_path), "--port", "0")
    try:
        address = address_in(process.stdout)
        port = int(address.rpartition(":")[2])
        assert status_of(raw_request(port, b"\x00 garbage\r\n\r\n")) == 400
        with httpx.stream("GET", f"{address}/api/runs/r/events", timeout=20.0) as stream:
            lines = stream.iter_lines()
            next(lines)
            process.send_signal(number)
            # Read to its end, which is a whole one and not a broken connection.
            rest = list(lines)
        output, _ = process.communicate(timeout=20)
    finally:
        end(process)

    assert "event: state" in rest
    assert (process.returncode, output) == (code, "")


def test_the_token_is_in_no_output_and_no_file(tmp_path: Path) -> None:
    make_run(tmp_path)
    words = ("launch/dashboard.py", str(tmp_path), "--port", "0", "--allow-control")
    process = start(*words, env={"WARPZONE_DASHBOARD_TOKEN": TOKEN})
    try:
        address, told = address_line(process.stdout)
        url = f"{address}/api/runs/r/control"
        for given in (TOKEN, "wrong"):
            headers = {"Authorization": f"Bearer {given}"}
            httpx.post(url, json={"name": "stop"}, headers=headers, timeout=20.0)
        httpx.get(f"{address}/api/runs?token={TOKEN}", timeout=20.0)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
    finally:
        end(process)

    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert TOKEN not in told + output
    assert all(TOKEN.encode() not in content for content in files)


def test_help_tells_how_to_use_it() -> None:
    code, output = run("launch/dashboard.py", "--help")

    assert code == 0
    assert "python launch/dashboard.py runs --allow-control" in output


def test_a_room_that_refuses_to_open_is_told_beside_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPZONE_DASHBOARD_TOKEN", "too-short")
    said = io.StringIO()
    with room_beside(make_run(tmp_path), Console(file=said, width=400)):
        wait_until("it is told", lambda: "the run goes on" in said.getvalue(), 30.0)

    (address, told) = said.getvalue().splitlines()
    assert address.startswith("control room: http://127.0.0.1:")
    assert told.startswith("control room: ended with code 2, the run goes on; ")
    assert "a token has at least 16 plain characters" in told
    assert "too-short" not in told


def test_a_room_that_is_ended_with_its_run_is_not_told(tmp_path: Path) -> None:
    said = io.StringIO()
    with room_beside(make_run(tmp_path), Console(file=said, width=400)):
        pass

    assert len(said.getvalue().splitlines()) == 1


@pytest.mark.slow
def test_beside_a_run_it_ends_with_the_run(tmp_path: Path) -> None:
    launched = LaunchedRun(tmp_path, "--plain", "--dashboard")
    try:
        address = address_in(launched.launcher.stdout)
        launched.wait_for("learner-0", "updates_here", 0)
        state = httpx.get(f"{address}/api/runs/r/state", timeout=30.0).json()
        rooms = processes_mentioning("launch.dashboard")
        ours = [room for room in rooms if str(tmp_path) in " ".join(room.cmdline())]
        nice = [room.nice() for room in ours]
        ended = launched.stop(signal.SIGINT)
    finally:
        launched.close()

    assert {row["name"] for row in state["processes"]} >= {"learner-0", "actor-0"}
    assert nice == [os.nice(0) + LOW_PRIORITY]
    assert LOW_PRIORITY > ACTOR_NICENESS
    assert ended.code == 130
    wait_until("the control room is gone", lambda: not any(room.is_running() for room in ours))


@pytest.mark.slow
def test_a_launcher_that_is_killed_takes_it_along(tmp_path: Path) -> None:
    launched = LaunchedRun(tmp_path, "--plain", "--dashboard")
    try:
        address_in(launched.launcher.stdout)
        launched.wait_for("actor-0", "progress", 0)
        rooms = processes_mentioning("launch.dashboard")
        ours = [room for room in rooms if str(tmp_path) in " ".join(room.cmdline())]
        launched.launcher.kill()

        assert len(ours) == 1
        wait_until("the control room is gone", lambda: not ours[0].is_running())
    finally:
        launched.close()
