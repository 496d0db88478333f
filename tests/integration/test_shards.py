"""Two replay servers under the launcher: both are learned from, and one may be lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from common.jsonl import last_record
from common.shards import shard_of
from tests.launched_run import LaunchedRun

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(180)]

SERVERS = ("replay_server-0", "replay_server-1")
ACTORS = ("actor-0", "actor-1", "actor-2", "actor-3")
WINDOW = 4
BACK_WITHIN_S = 10.0


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchedRun]:
    words = ("--replay-shards", "2", "--actors", "4", "--block-steps", "16")
    run = LaunchedRun(
        tmp_path_factory.mktemp("shards"), *words, faults={"agent_step_delay_s": 0.002}
    )
    try:
        run.wait_for("learner-0", "updates_here", 10)
        yield run
    finally:
        run.close()


def test_a_lost_server_costs_its_transitions_and_nothing_else(run: LaunchedRun) -> None:
    assert {shard_of(actor, 2) for actor in ACTORS} == {0, 1}
    for server in SERVERS:
        run.wait_for(server, "replay_sample_total", 100)
    before = run.pids()

    old = run.kill("replay_server-1")
    trained = run.number("learner-0", "progress")
    run.wait_for("learner-0", "progress", trained + 50, BACK_WITHIN_S)
    run.wait_for_new_life("replay_server-1", old, "replay_push_blocks_total")
    # It has its share of the start of learning again, and is drawn from.
    run.wait_for("replay_server-1", "replay_sample_total", 100)
    acked = {actor: run.number(actor, "blocks_acked") for actor in ACTORS}
    for actor in ACTORS:
        run.wait_for(actor, "blocks_acked", acked[actor])

    now = run.pids()
    assert {peer for peer in now if now[peer] != before[peer]} == {"replay_server-1"}
    for actor in ACTORS:
        beat = run.beat(actor)
        assert (beat["blocks_rejected"], beat["blocks_dropped"]) == (0, 0)
        out = int(str(beat["blocks_submitted"])) - int(str(beat["blocks_acked"]))
        assert 0 <= out <= WINDOW
    metrics = last_record(run.paths.metrics) or {}
    stored = sum(run.number(server, "replay_push_total") for server in SERVERS)
    assert int(str(metrics["global_step"])) > 0.5 * stored
    ended = run.stop(signal.SIGINT)
    assert ended.code == 130, ended.output
    assert run.left() == []
