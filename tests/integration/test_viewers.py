"""Viewers without a browser: they ask as the page does; a hundred of them beside a run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest

from common.jsonl import read_jsonl
from launch.benchmarks import viewer
from launch.benchmarks.browser import opened_browser
from launch.benchmarks.viewer import ENDED, Viewer, opened
from tests.browser import needs_chromium
from tests.launched_run import LaunchedRun
from tests.processes import ROOT, address_in, end, start
from tests.run_folders import make_run
from tests.served_room import served_room
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

SCRIPTS = ROOT / "launch/control_room/assets/js"
VIEWERS = 100
MINUTE_S = 60.0


def test_a_viewer_sees_events_and_every_new_frame_once(tmp_path: Path) -> None:
    live = make_run(tmp_path).root / "live"
    with served_room(tmp_path) as port, opened([Viewer(port, "r", ("actor-0",))]) as (one,):
        wait_until("it asks for the actor", (live / "actor-0.want").exists)
        (live / "actor-0.jpg").write_bytes(b"first")
        wait_until("the first frame", lambda: one.frames == 1)
        (live / "actor-0.jpg").write_bytes(b"second")
        wait_until("the second frame", lambda: one.frames == 2)
        time.sleep(2.5 * viewer.LIVE_PERIOD_S)

        assert (one.frames, one.errors) == (2, [])
        assert one.events >= 1


def test_a_viewer_of_a_run_that_is_deleted_says_so(tmp_path: Path) -> None:
    make_run(tmp_path)
    with served_room(tmp_path) as port, opened([Viewer(port, "r")]) as (one,):
        wait_until("the first event", lambda: one.events > 0)
        shutil.rmtree(tmp_path / "r")
        wait_until("the end", lambda: bool(one.errors))

    assert ENDED in one.errors[0]


@needs_chromium
def test_a_browser_shows_the_one_actor_and_tells_what_it_used(tmp_path: Path) -> None:
    paths = make_run(tmp_path)
    live = paths.root / "live"
    live.mkdir()
    (live / "actor-0.jpg").write_bytes(b"a screen")
    with served_room(tmp_path) as port, opened_browser(port, paths, "actor-0") as browser:
        wait_until("it asks for the actor", (live / "actor-0.want").exists)
        used_s, errors = sum(browser.worked_s().values()), browser.errors
        os.utime(live / "actor-0.jpg", (1_000.0, 1_000.0))

        assert errors == []
        assert "old" in browser.errors[0]
    assert used_s > 0.0
    assert not (live / "actor-1.want").exists()


def test_viewers_ask_as_often_as_the_page() -> None:
    periods = {
        "live.js": ("PERIOD_MS", viewer.LIVE_PERIOD_S),
        "app.js": ("RUNS_INTERVAL_MS", viewer.LIST_PERIOD_S),
    }
    for script, (name, seconds) in periods.items():
        text = (SCRIPTS / script).read_text(encoding="utf-8")
        found = re.search(rf"const {name} = (\d+);", text)

        assert found is not None
        assert int(found[1]) == 1_000 * seconds


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_hundred_viewers_for_a_minute_are_served_while_the_run_goes_on(tmp_path: Path) -> None:
    """How much of its rate the run keeps is a figure of `launch/benchmark.py watching`."""
    run = LaunchedRun(tmp_path, "--plain")
    room = start("launch/dashboard.py", str(tmp_path), "--port", "0")
    try:
        port = int(address_in(room.stdout).rpartition(":")[2])
        run.wait_for("learner-0", "updates_here", 5)
        viewers = [Viewer(port, "r", ("actor-0",) if n == 0 else ()) for n in range(VIEWERS)]
        pids, updates, rss_mb = run.pids(), [], []
        with opened(viewers):
            for _ in range(6):
                time.sleep(MINUTE_S / 6)
                updates.append(run.number("learner-0", "progress"))
                rss_mb.append(psutil.Process(room.pid).memory_info().rss / 2**20)
        errors = [error for one in viewers for error in one.errors]
        after = run.number("learner-0", "progress")
        run.wait_for("learner-0", "progress", after + 5)
        assert run.stop(signal.SIGINT).code == 130
        beats = {peer: list(read_jsonl(run.paths.process_heartbeat(peer))) for peer in pids}
    finally:
        end(room)
        run.close()

    assert errors == []
    assert min(one.events for one in viewers) >= 10
    assert viewers[0].frames >= 60
    # Every ten seconds found new updates, and nobody had to be started again.
    assert updates == sorted(set(updates))
    assert {peer: {line["pid"] for line in lines} for peer, lines in beats.items()} == {
        peer: {pid} for peer, pid in pids.items()
    }
    assert rss_mb[-1] - rss_mb[1] < 60.0
