"""Faults between programs that were started by hand, over TCP; the tests share the processes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered
from common.jsonl import read_jsonl
from common.messages import PROTOCOL_VERSION
from common.shared_files import remove_shared, shared_prefix
from tests.faults.conftest import Measured
from tests.process_system import (
    REPOSITORY,
    START_DEADLINE_S,
    ProcessSystem,
    free_endpoints,
    logged_at,
)
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.faults_only, pytest.mark.timeout(240)]

MAX_AGE_S = 2.0
PAUSING = ("--max-weight-age-s", str(MAX_AGE_S))
"""For the lives that come after the first: those never repeat what they said."""
NEVER_HELD: dict[str, object] = {"balance_slack_agent_steps": 10_000_000, "samples_per_insert": 0.5}


@pytest.fixture(scope="module")
def system() -> Iterator[ProcessSystem]:
    folder = Path(tempfile.mkdtemp(prefix="wz-"))
    changes: dict[str, dict[str, object]] = {
        "run": {"metrics_interval_s": 0.1},
        "endpoints": {**free_endpoints()},
        "replay": NEVER_HELD,
        "actor": {"actors": 2},
        "learner": {"checkpoint_interval_s": 2.0},
    }
    system = ProcessSystem(corridor_settings(folder, changes))
    try:
        for package in ("replay_server", "learner"):
            system.start(package)
        yield system
    finally:
        system.close()
        remove_shared(shared_prefix(system.paths))
        shutil.rmtree(folder)


def first_checkpoint(system: ProcessSystem) -> Path:
    """A copy of what the learner wrote before its first update."""
    return system.paths.root.parent / "first"


@pytest.mark.fault(14, "late actor, idle learner", "first weights within 1 s of its HELLO")
def test_a_late_actor_has_weights_at_once(system: ProcessSystem, measured: Measured) -> None:
    wait_until("an idle learner", lambda: system.beat("learner-0") != {}, START_DEADLINE_S)
    shutil.copytree(list_numbered(system.paths.checkpoints)[0], first_checkpoint(system))

    peer = system.start("actor")
    system.wait_for(peer, "blocks_acked", 1)

    beats = read_jsonl(system.paths.process_heartbeat(peer))
    first_s = next(float(str(b["time"])) for b in beats if b.get("weight_version") is not None)
    delay_s = first_s - logged_at(system.log(peer), "environments ready")
    measured(f"{delay_s:.2f} s after its environments stood")
    assert delay_s < 1.0


@pytest.mark.fault(16, "learner restarted from an older step", "its older weights are believed")
def test_an_older_version_of_a_newer_learner_is_believed(
    system: ProcessSystem, measured: Measured
) -> None:
    system.wait_for("actor-0", "weight_version", 300)
    actor = system.processes["actor-0"]

    system.processes["learner-0"].kill()
    system.processes["learner-0"].communicate(timeout=START_DEADLINE_S)
    system.start("learner", 0, "--resume", str(first_checkpoint(system)), *PAUSING)
    wait_until("an older version", lambda: fall(system) is not None, START_DEADLINE_S)
    before, after = fall(system) or (0, 0)
    system.wait_for("actor-0", "weight_version", after + 1)

    measured(f"version {before}, then {after} and rising; no actor restarted")
    assert actor.poll() is None
    assert system.number("replay_server-0", "replay_rejected_blocks_total") == 0


def fall(system: ProcessSystem) -> tuple[int, int] | None:
    """The versions between which the actor went back, if it did."""
    beats = read_jsonl(system.paths.process_heartbeat("actor-0"))
    told = [beat["weight_version"] for beat in beats if "weight_version" in beat]
    versions = [version for version in told if isinstance(version, int)]
    falls = [pair for pair in pairwise(versions) if pair[1] < pair[0]]
    return falls[-1] if falls else None


@pytest.mark.fault(24, "duplicate actor id", "the newest life wins, the old one is told to exit")
def test_the_newest_of_two_actors_with_one_name_wins(
    system: ProcessSystem, measured: Measured
) -> None:
    system.wait_for("actor-0", "blocks_acked", 1)
    old = system.processes["actor-0 before"] = system.processes["actor-0"]

    system.start("actor", 0, *PAUSING)
    new = system.processes["actor-0"]
    _, errors = old.communicate(timeout=START_DEADLINE_S)
    wait_until("the new one", lambda: system.beat("actor-0").get("pid") == new.pid, 30)
    acked = system.number("actor-0", "blocks_acked")
    system.wait_for("actor-0", "blocks_acked", acked + 1)

    assert old.returncode == 2
    (line,) = errors.splitlines()
    assert "a newer actor-0 has taken over" in line
    assert new.poll() is None
    measured("the old one ended with 2 and said why, the new one goes on")


@pytest.mark.fault(15, "stale weights", "age and lag are told; the actor pauses above the limit")
def test_an_actor_pauses_while_the_learner_is_silent(
    system: ProcessSystem, measured: Measured
) -> None:
    system.wait_for("learner-0", "updates_here", 5)
    learner = system.processes["learner-0"]

    os.kill(learner.pid, signal.SIGSTOP)
    try:
        waited_s = wait_until("a pause", lambda: pauses(system), START_DEADLINE_S)
        played = system.number("actor-0", "progress")
        time.sleep(1.0)
        age_s, still = (
            system.number("actor-0", "weight_age_s"),
            system.number("actor-0", "progress"),
        )
    finally:
        os.kill(learner.pid, signal.SIGCONT)
    system.wait_for("actor-0", "progress", still + 1)

    measured(f"paused after {waited_s:.1f} s (limit {MAX_AGE_S:.0f} s), played on when it spoke")
    assert still == played
    assert age_s > MAX_AGE_S


def pauses(system: ProcessSystem) -> bool:
    return system.beat("actor-0").get("state") == "waiting for fresh weights from the learner"


NEWER_CODE = "import common.messages as m; m.PROTOCOL_VERSION += 1\n"


@pytest.mark.fault(17, "mixed versions, wrong shapes", "refused at HELLO with both values, exit 2")
@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        ((), NEWER_CODE, f"we speak version {PROTOCOL_VERSION + 1}, the peer {PROTOCOL_VERSION}"),
        (("--stack", "3"), "", r"data: it has .*'stack': 2.*, we have .*'stack': 3"),
        (("--n-step", "4"), "", r"data: it has .*'n_step': 3.*, we have .*'n_step': 4"),
    ],
    ids=["version", "stack", "n-step"],
)
def test_an_actor_that_does_not_fit_is_refused(  # noqa: PLR0913 - fixtures and a case
    system: ProcessSystem,
    measured: Measured,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    words: tuple[str, ...],
    code: str,
    expected: str,
) -> None:
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{REPOSITORY}")
    served = system.number("replay_server-0", "progress")

    # Weights that do not fit would end it too, and whichever comes first speaks.
    peer = system.start("actor", 1, "--weights-endpoint", "tcp://127.0.0.1:1", *words)
    _, errors = system.processes[peer].communicate(timeout=START_DEADLINE_S)

    assert system.processes[peer].returncode == 2
    (line,) = errors.splitlines()
    assert system.settings.endpoints.replay_endpoint in line
    assert re.search(expected, line), line
    system.wait_for("replay_server-0", "progress", served + 1)
    measured(f"exit 2, both named: {words[0] if words else 'protocol version'}")


@pytest.mark.fault(9, "SIGTERM to programs on TCP", "exit 143, no port is left open")
def test_no_port_is_left_open(system: ProcessSystem, measured: Measured) -> None:
    began_s = time.monotonic()
    codes = [system.terminate(peer) for peer in ("actor-0", "replay_server-0", "learner-0")]
    took_s = time.monotonic() - began_s

    assert codes == [143, 143, 143]
    for endpoint in (
        system.settings.endpoints.replay_endpoint,
        system.settings.endpoints.weights_endpoint,
        system.settings.endpoints.telemetry_endpoint,
    ):
        host, _, port = endpoint.removeprefix("tcp://").partition(":")
        with socket.socket() as again:
            assert again.connect_ex((host, int(port))) != 0
    measured(f"three programs in {took_s:.1f} s, all ports closed")


@pytest.mark.fault(23, "port taken", "one line that names it, exit 2")
def test_a_taken_port_ends_a_program_with_one_line(tmp_path: Path, measured: Measured) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        endpoints = {**free_endpoints(), "replay_endpoint": endpoint}
        system = ProcessSystem(corridor_settings(tmp_path, {"endpoints": endpoints}))
        peer = system.start("replay_server")
        began_s = time.monotonic()
        try:
            _, errors = system.processes[peer].communicate(timeout=START_DEADLINE_S)
        finally:
            system.processes[peer].kill()

    assert system.processes[peer].returncode == 2
    (line,) = errors.splitlines()
    assert endpoint in line
    assert "another run" in line
    measured(f"{time.monotonic() - began_s:.1f} s, imports included")
