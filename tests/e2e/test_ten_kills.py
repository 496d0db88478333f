"""Two learner ranks, two replay servers, four actors: any of them may be killed, ten times over."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator

import pytest

from actor.env.corridor import OPTIMAL_RETURN
from common.checkpoint_files import list_numbered, verify_checkpoint
from common.jsonl import last_record
from tests.launched_run import LaunchedRun

pytestmark = [pytest.mark.e2e, pytest.mark.nightly, pytest.mark.timeout(900)]

KILLS = 10
WINDOW = 4
"""Blocks that an actor may have without an answer, the default of --send-window."""
LEARNING_DEADLINE_S = 180.0
ACTORS = tuple(f"actor-{index}" for index in range(4))
DEEDS = {
    **dict.fromkeys(("learner-0", "learner-1"), "updates_here"),
    **dict.fromkeys(("replay_server-0", "replay_server-1"), "replay_push_blocks_total"),
    **dict.fromkeys(ACTORS, "blocks_acked"),
}
"""What a new life of each has done when it is of use again."""


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchedRun]:
    words = ("--learner-ranks", "2", "--replay-shards", "2", "--actors", "4")
    run = LaunchedRun(tmp_path_factory.mktemp("kills"), *words)
    try:
        run.wait_for("learner-1", "updates_here", 20)
        yield run
    finally:
        run.close()


def test_ten_random_kills_lose_nothing_that_was_promised(run: LaunchedRun) -> None:
    rng = random.Random(1)

    for _ in range(KILLS):
        _kill_one(run, rng.choice(sorted(DEEDS)))

    run.wait("the optimum of the corridor", lambda: _has_learned(run), LEARNING_DEADLINE_S)
    for actor in ACTORS:
        for pid, beat in run.last_beats(actor).items():
            _check_blocks(f"{actor}, pid {pid}", beat)
    ended = run.stop(signal.SIGINT)
    assert ended.code == 130, ended.output
    assert run.left() == []
    verify_checkpoint(list_numbered(run.paths.checkpoints)[0])


def _kill_one(run: LaunchedRun, peer: str) -> None:
    """Kill it; it comes back, and the run goes on from where the newest checkpoint was at least."""
    saved = int(list_numbered(run.paths.checkpoints)[0].name)
    before = run.pids()

    run.kill(peer)

    # A rank that is lost takes the others with it.
    reborn = ("learner-0", "learner-1") if peer.startswith("learner") else (peer,)
    for one in reborn:
        run.wait_for_new_life(one, before[one], DEEDS[one])
    trained = run.number("learner-0", "progress")
    run.wait_for("learner-0", "progress", trained)
    assert (last_record(run.paths.metrics) or {})["global_step"] >= saved  # type: ignore[operator] # a number
    now = run.pids()
    assert {one for one in now if now[one] != before[one]} == set(reborn)


def _check_blocks(life: str, beat: dict[str, object]) -> None:
    """Everything that was sent is stored, counted as dropped, or on its way."""
    sent, acked, dropped, rejected = (
        int(str(beat[f"blocks_{name}"])) for name in ("submitted", "acked", "dropped", "rejected")
    )
    assert (dropped, rejected) == (0, 0), life
    assert 0 <= sent - acked <= WINDOW, life


def _has_learned(run: LaunchedRun) -> bool:
    value = (last_record(run.paths.metrics) or {}).get("recent_return_p50")
    return isinstance(value, int | float) and value >= OPTIMAL_RETURN
