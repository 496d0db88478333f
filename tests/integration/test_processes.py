"""Replay server, learner and actors as real processes over real sockets.

The tests of one transport share the processes; the last of them stops what is left.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered, load_checkpoint
from common.jsonl import read_jsonl
from common.shared_files import remove_shared, shared_prefix, shared_root
from tests.process_system import (
    START_DEADLINE_S,
    ProcessSystem,
    free_endpoints,
    logged_at,
    start_program,
)
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

JOIN_DEADLINE_S = 5.0
NEVER_HELD = {"balance_slack_agent_steps": 10_000_000, "samples_per_insert": 0.5}


@pytest.fixture(scope="module", params=["tcp", "ipc"])
def system(request: pytest.FixtureRequest) -> Iterator[ProcessSystem]:
    # A short folder: the paths of local sockets have few bytes.
    folder = Path(tempfile.mkdtemp(prefix="wz-"))
    endpoints = free_endpoints()
    if request.param == "ipc":
        endpoints = {name: f"ipc://{folder}/{name}" for name in endpoints}
    settings = corridor_settings(
        folder, {"endpoints": endpoints, "replay": NEVER_HELD, "actor": {"actors": 3}}
    )
    system = ProcessSystem(settings)
    try:
        for package in ("actor", "learner", "replay_server"):
            system.start(package)
        yield system
    finally:
        system.close()
        remove_shared(shared_prefix(system.paths))
        shutil.rmtree(folder)


def test_started_in_an_odd_order_they_find_each_other_and_train(system: ProcessSystem) -> None:
    system.wait_for("actor-0", "blocks_acked", 5)
    system.wait_for("learner-0", "progress", 20)
    system.wait_for("actor-0", "weight_version", 10)

    assert system.number("replay_server-0", "replay_bad_messages_total") == 0
    assert system.number("replay_server-0", "replay_rejected_blocks_total") == 0
    files = list(shared_root().glob(f"{shared_prefix(system.paths)}*"))
    is_local = system.settings.endpoints.replay_endpoint.startswith("ipc://")
    assert len(files) == is_local


def test_an_actor_that_starts_later_joins_at_once(system: ProcessSystem) -> None:
    system.wait_for("learner-0", "progress", 1)

    peer = system.start("actor", 1)
    system.wait_for(peer, "blocks_acked", 1)
    # Two cores have enough to do with what follows.
    assert system.terminate(peer) == 143

    beats = read_jsonl(system.paths.process_heartbeat(peer))
    first_s = next(float(str(b["time"])) for b in beats if b.get("blocks_acked"))
    delay_s = first_s - logged_at(system.log(peer), "environments ready")
    # Well below a second on a quiet machine; the deadline only tells joining from waiting for
    # the next broadcast of weights, which a loaded machine must not make it look like.
    assert delay_s < JOIN_DEADLINE_S


def test_an_actor_of_another_run_ends_and_names_both_sides(system: ProcessSystem) -> None:
    system.wait_for("learner-0", "progress", 1)

    stranger = system.processes[system.start("actor", 2, "--run", "stranger")]
    _, errors = stranger.communicate(timeout=START_DEADLINE_S)

    assert stranger.returncode == 2
    assert len(errors.splitlines()) == 1
    assert "stranger" in errors
    assert "tiny" in errors
    assert system.processes["replay_server-0"].poll() is None


@pytest.mark.parametrize("peer", ["actor-0", "replay_server-0", "learner-0"])
def test_sigterm_ends_each_in_time(system: ProcessSystem, peer: str) -> None:
    system.wait_for(peer, "progress", 1)

    start_s = time.monotonic()
    code = system.terminate(peer)

    assert code == 143
    assert time.monotonic() - start_s < 8.0
    if peer == "actor-0":
        beat = system.beat(peer)
        assert beat["state"] == "stopped"
        assert beat["blocks_submitted"] == system.number(peer, "blocks_acked")
        assert beat["blocks_dropped"] == 0
    if peer == "learner-0":
        saved = load_checkpoint(list_numbered(system.paths.checkpoints)[0])
        assert saved.agent_steps > 0


@pytest.mark.parametrize(
    ("package", "words", "named"),
    [
        ("actor", ["--index", "99"], "--index must be from 0 to 7"),
        ("learner", ["--gamma", "2"], "--gamma"),
        ("replay_server", ["--config", "no-such-file.toml"], "no-such-file.toml"),
    ],
)
def test_a_wrong_setting_ends_a_program_with_one_line(
    package: str, words: list[str], named: str
) -> None:
    program = start_program(package, words)

    _, errors = program.communicate(timeout=START_DEADLINE_S)

    assert program.returncode == 2
    (line,) = errors.splitlines()
    assert named in line


def test_programs_do_not_wait_for_torch_to_show_their_help() -> None:
    program = start_program("learner", ["--help"])

    took_s = wait_until("help", lambda: program.poll() is not None, START_DEADLINE_S)

    program.communicate()
    assert program.returncode == 0
    assert took_s < 5.0
