"""Two learner ranks, two replay servers: they train, survive the loss of a rank, stop together."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import psutil
import pytest

from actor.env.corridor import OPTIMAL_RETURN
from common.checkpoint_files import list_numbered, verify_checkpoint
from common.jsonl import last_record, read_jsonl
from tests.launched_run import Ended, LaunchedRun

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

LEARNING_DEADLINE_S = 120.0
STOP_DEADLINE_S = 30.0
"""Against a hang: ten seconds are what a machine with nothing else to do needs at most."""
LEAST_COMPARED = 3
"""Heartbeats of the second rank with one of the first before and after."""
RANKS = ("learner-0", "learner-1")
TWO_OF_EACH = ("--learner-ranks", "2", "--replay-shards", "2", "--actors", "4")


@dataclass
class Finished:
    """What a run left whose second rank was killed."""

    run: LaunchedRun
    before: dict[str, int]
    after: dict[str, int]
    updates_when_killed: float
    listening: set[str]
    """Addresses that the ranks listened on."""
    end: Ended
    left: int


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    run = LaunchedRun(tmp_path_factory.mktemp("ranks"), *TWO_OF_EACH)
    try:
        run.wait_for("learner-1", "updates_here", 20)
        before, listening = _pids(run), _listening(run)
        updates = run.number("learner-0", "progress")
        run.kill("learner-1")
        for rank in RANKS:
            run.wait_for_new_life(rank, before[rank], "updates_here")
        after = _pids(run)
        run.wait_for("learner-0", "progress", updates + 40)
        end = run.stop(signal.SIGINT)
        yield Finished(run, before, after, updates, listening, end, len(run.left()))
    finally:
        run.close()


def _pids(run: LaunchedRun) -> dict[str, int]:
    return {rank: run.pid(rank) for rank in RANKS}


def _listening(run: LaunchedRun) -> set[str]:
    processes = [psutil.Process(run.pid(rank)) for rank in RANKS]
    family = [*processes, *(parent for one in processes for parent in one.parents()[:1])]
    return {
        connection.laddr.ip
        for process in family
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def _updates(finished: Finished, rank: str) -> list[tuple[float, int]]:
    """Of its last life: when it told, and how many updates it had made."""
    beats = read_jsonl(finished.run.paths.process_heartbeat(rank))
    mine = (beat for beat in beats if beat["pid"] == finished.after[rank])
    return [(float(str(beat["time"])), int(str(beat["progress"]))) for beat in mine]


def _has_learned(root: Path) -> bool:
    value = (last_record(root / "metrics.jsonl") or {}).get("recent_return_p50")
    return isinstance(value, int | float) and value >= OPTIMAL_RETURN


def test_a_killed_rank_begins_again_with_all_others(finished: Finished) -> None:
    for rank in RANKS:
        assert finished.before[rank] != finished.after[rank]
    assert "restarts of learner-0: 1 (1 x ended by SIGKILL)" in finished.end.output


def test_no_update_is_lost_with_the_rank(finished: Finished) -> None:
    beats = read_jsonl(finished.run.paths.process_heartbeat("learner-0"))
    lives = [beat for beat in beats if beat["pid"] == finished.after["learner-0"]]

    assert int(str(lives[0]["progress"])) >= finished.updates_when_killed


def test_ranks_make_the_same_updates(finished: Finished) -> None:
    """No rank ends an update that another has not begun: at one moment they differ by one."""
    first, second = (_updates(finished, rank) for rank in RANKS)

    compared = 0
    for time_s, updates in second:
        before = [count for at_s, count in first if at_s <= time_s]
        after = [count for at_s, count in first if at_s >= time_s]
        if before and after:
            compared += 1
            assert before[-1] - 1 <= updates <= after[0] + 1
    assert compared >= LEAST_COMPARED
    assert min(first[-1][1], second[-1][1]) > finished.updates_when_killed


def test_ranks_listen_on_loopback_only(finished: Finished) -> None:
    assert finished.listening
    assert all(ip_address(address).is_loopback for address in finished.listening)


def test_all_ranks_stop_with_a_checkpoint(finished: Finished) -> None:
    assert finished.end.code == 130
    assert finished.end.took_s < STOP_DEADLINE_S
    assert finished.left == 0
    verify_checkpoint(list_numbered(finished.run.paths.checkpoints)[0])


def test_heartbeats_of_every_rank_reach_the_run_file(finished: Finished) -> None:
    speakers = {(line["role"], line["index"]) for line in read_jsonl(finished.run.paths.heartbeat)}

    assert {("learner", 0), ("learner", 1)} <= speakers


@pytest.mark.nightly
def test_two_ranks_learn_the_optimum_of_the_corridor(tmp_path: Path) -> None:
    run = LaunchedRun(tmp_path, *TWO_OF_EACH)
    try:
        run.wait("the optimum", lambda: _has_learned(run.paths.root), LEARNING_DEADLINE_S)
    finally:
        run.close()
