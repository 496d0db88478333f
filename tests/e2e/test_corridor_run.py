"""The real processes on the corridor: they reach the known optimum, stop cleanly and go on."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from actor.env.corridor import OPTIMAL_RETURN
from common.checkpoint_files import list_numbered, load_checkpoint, verify_checkpoint
from common.jsonl import last_record, read_jsonl
from common.metrics import METRIC_NAMES
from common.resume import BEST_NAME, read_pointer
from tests.processes import end, processes_mentioning, run, start, write_corridor
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

LEARNING_DEADLINE_S = 120.0
STOP_DEADLINE_S = 10.0


@dataclass
class Finished:
    """What one interrupted run left behind."""

    root: Path
    exit_code: int
    stop_s: float
    learned_s: float
    output: str
    restart_pids: tuple[int, int]
    updates_before_kill: int


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    """Train until the optimum, kill one actor on the way, then press Ctrl-C."""
    folder = tmp_path_factory.mktemp("e2e")
    root = folder / "corridor"
    launcher = start(
        "launch/local.py",
        "--preset",
        str(write_corridor(folder)),
        "--runs-dir",
        str(folder),
        "--run",
        "corridor",
        *("--evaluators", "1", "--eval-interval-agent-steps", "2000", "--eval-episodes", "5"),
    )
    try:
        wait_until("a thousand agent steps", lambda: _metric(root, "global_step") > 1_000, 60)
        pids = _kill_and_wait_for_another(root)
        updates = _kill_learner_and_wait_for_another(root)
        learned_s = wait_until(
            "the optimum of the corridor",
            lambda: _metric(root, "recent_return_p50") >= OPTIMAL_RETURN,
            LEARNING_DEADLINE_S,
        )
        wait_until("a perfect evaluation", lambda: _newest_clear_rate(root) == 1.0, 60)
        pressed = time.monotonic()
        launcher.send_signal(signal.SIGINT)
        output, _ = launcher.communicate(timeout=60)
        stop_s = time.monotonic() - pressed
        yield Finished(root, launcher.returncode, stop_s, learned_s, output, pids, updates)
    finally:
        end(launcher)
        for process in processes_mentioning(str(root)):
            process.kill()


def _metric(root: Path, name: str) -> float:
    value = (last_record(root / "metrics.jsonl") or {}).get(name)
    return float(value) if isinstance(value, int | float) else float("-inf")


def _newest_clear_rate(root: Path) -> object:
    return (last_record(root / "eval.jsonl") or {}).get("clear_rate")


def _actor_pid(root: Path) -> int:
    pid = (last_record(root / "heartbeats" / "actor-0.jsonl") or {}).get("pid")
    return pid if isinstance(pid, int) else -1


def _kill_and_wait_for_another(root: Path) -> tuple[int, int]:
    first = _actor_pid(root)
    psutil.Process(first).kill()
    wait_until("another life of actor-0", lambda: _actor_pid(root) != first, 30)
    return first, _actor_pid(root)


def _kill_learner_and_wait_for_another(root: Path) -> int:
    """Updates in the newest checkpoint when the learner was killed."""
    log = root / "logs" / "learner-0.log"
    wait_until("a checkpoint", lambda: len(list_numbered(root / "checkpoints")) > 1, 60)
    beat = last_record(root / "heartbeats" / "learner-0.jsonl") or {}
    psutil.Process(int(str(beat["pid"]))).kill()
    saved = _saved_updates(root)
    wait_until("a resumed learner", lambda: "resumed" in log.read_text(encoding="utf-8"), 30)
    return saved


def _saved_updates(root: Path) -> int:
    newest = load_checkpoint(list_numbered(root / "checkpoints")[0])
    counters = newest.state["learner"]
    assert isinstance(counters, dict)
    return int(counters["updates"])


def test_a_killed_learner_went_on_from_its_checkpoint(finished: Finished) -> None:
    log = (finished.root / "logs" / "learner-0.log").read_text(encoding="utf-8")

    assert finished.updates_before_kill > 0
    assert f"updates={finished.updates_before_kill}" in log


def test_the_optimum_is_reached(finished: Finished) -> None:
    assert finished.learned_s < LEARNING_DEADLINE_S


def test_a_killed_actor_was_replaced(finished: Finished) -> None:
    before, after = finished.restart_pids

    assert before != after


def test_ctrl_c_saves_and_stops_in_time(finished: Finished) -> None:
    assert finished.exit_code == 130
    assert finished.stop_s < STOP_DEADLINE_S
    assert "results:" in finished.output


def test_nothing_is_left_running(finished: Finished) -> None:
    assert processes_mentioning(str(finished.root)) == []


def test_the_checkpoint_is_valid_and_newest(finished: Finished) -> None:
    newest = list_numbered(finished.root / "checkpoints")[0]

    manifest = verify_checkpoint(newest)

    assert manifest.agent_steps == _metric(finished.root, "global_step")


def test_every_metrics_line_has_all_metrics(finished: Finished) -> None:
    lines = list(read_jsonl(finished.root / "metrics.jsonl"))

    assert len(lines) > 5
    assert all(line.keys() == METRIC_NAMES for line in lines)
    steps = [line["global_step"] for line in lines]
    assert steps == sorted(steps, key=lambda value: value if isinstance(value, int) else -1)


def test_heartbeats_of_all_processes_reach_the_run_file(finished: Finished) -> None:
    speakers = {
        (line["role"], line["index"]) for line in read_jsonl(finished.root / "heartbeat.jsonl")
    }

    actors = {("actor", 0), ("actor", 1), ("evaluator", 0)}
    assert speakers == {*actors, ("learner", 0), ("replay_server", 0)}


def test_the_evaluated_optimum_is_the_best_checkpoint(finished: Finished) -> None:
    lines = list(read_jsonl(finished.root / "eval.jsonl"))
    best = read_pointer(finished.root / "checkpoints", BEST_NAME)

    steps = [line["global_step"] for line in lines]
    assert len(set(steps)) == len(steps)
    rates = {line["checkpoint"]: line["clear_rate"] for line in lines}
    assert best is not None
    assert rates[best] == 1.0
    verify_checkpoint(finished.root / "checkpoints" / best)


def test_neither_side_runs_ahead_of_the_balance(finished: Finished) -> None:
    earned_by = _metric(finished.root, "replay_push_total") - 500
    # Since the killed learner came back: what it had missed by then is forgiven, not caught up.
    ratio = _metric(finished.root, "samples_per_insert")

    # The slack of 500 steps, and what two actors may have under way: four blocks of 32 each.
    slack_samples = 4 * (500 + 2 * 4 * 32)
    assert abs(4 - ratio) * earned_by <= slack_samples


def test_a_resumed_run_goes_on_where_it_stopped(finished: Finished) -> None:
    before = _metric(finished.root, "global_step")
    updates = _metric(finished.root, "updates")

    code, output = run(
        "launch/local.py",
        "--runs-dir",
        str(finished.root.parent),
        "--run",
        "corridor",
        "--resume",
        "--max-agent-steps",
        str(int(before) + 1_000),
        timeout_s=90,
    )

    assert code == 0, output
    assert f"at {int(before):,} agent steps" in output
    gained = _metric(finished.root, "global_step") - before
    assert 1_000 <= gained < 1_600
    # Four samples per step in batches of 32, from 500 steps on: no burst after the resume.
    assert _metric(finished.root, "updates") - updates <= gained * 4 / 32 + 80
