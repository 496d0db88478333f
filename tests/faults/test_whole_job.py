"""The whole job saved and taken up again by real processes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered, load_checkpoint
from common.jsonl import last_record
from tests.processes import end, processes_mentioning, start, write_corridor
from tests.processes import run as run_command
from tests.run_state import tensor_hash
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.faults_only]

LOCAL = "launch/local.py"
WANTED_AGENT_STEPS = 1_500
MAX_PAUSE_MS = 100


def newest_cut(run: Path) -> int:
    found = list_numbered(run / "replay" / "cuts")
    return int(found[0].name) if found else 0


def newest_pair(run: Path) -> int:
    """Of a checkpoint that has its cut: a kill between the two leaves a cut alone."""
    cuts = {path.name for path in list_numbered(run / "replay" / "cuts")}
    both = [path for path in list_numbered(run / "checkpoints") if path.name in cuts]
    return int(both[0].name) if both else 0


@pytest.mark.fault(
    27,
    "`kill -9` of everything",
    "with --checkpoint-replay the resumed run has its replay back; no pause over 100 ms",
)
def test_a_resumed_run_has_its_replay_back(tmp_path: Path, measured: Callable[[str], None]) -> None:
    words = (
        *(LOCAL, "--preset", str(write_corridor(tmp_path)), "--runs-dir", str(tmp_path)),
        *("--run", "r", "--checkpoint-replay", "--checkpoint-interval-s", "1", "--plain"),
    )
    run = tmp_path / "r"
    log = run / "logs" / "replay_server-0.log"
    first = start(*words)
    try:
        wait_until("a cut", lambda: newest_pair(run) > WANTED_AGENT_STEPS, 90)
        metrics = last_record(run / "metrics.jsonl") or {}
        for process in processes_mentioning(str(run)):
            process.kill()
    finally:
        end(first)
    saved = newest_pair(run)

    second = start(*words)
    try:
        wait_until("the replay", lambda: "replay restored" in log.read_text(), 60)
    finally:
        end(second)

    (line,) = [line for line in log.read_text().splitlines() if "replay restored" in line]
    (items,) = re.findall(r"items\W+(\d+)", line)
    pause_ms = float(str(metrics["replay_cut_pause_ms"]))
    measured(f"{items} items of the cut at {saved:,} agent steps; longest pause {pause_ms:.1f} ms")
    assert int(items) >= WANTED_AGENT_STEPS / 2
    assert pause_ms < MAX_PAUSE_MS


def lockstep_words(folder: Path) -> tuple[str, ...]:
    return (
        *(LOCAL, "--preset", str(write_corridor(folder)), "--runs-dir", str(folder), "--run", "r"),
        *("--lockstep", "--checkpoint-replay", "--seed", "5", "--max-agent-steps", "2500"),
        *("--checkpoint-interval-s", "3600", "--eval-interval-agent-steps", "500"),
        *("--evaluators", "1", "--eval-episodes", "1", "--plain"),
    )


def final_hash(folder: Path) -> str:
    path = list_numbered(folder / "r" / "checkpoints")[0]
    assert int(path.name) >= 2_500
    return tensor_hash(load_checkpoint(path))


@pytest.mark.fault(
    26,
    "`kill -9` in lockstep",
    "with --checkpoint-replay the resumed run is bit-equal to one that was never interrupted",
)
def test_a_killed_lockstep_run_ends_as_if_nothing_had_happened(
    tmp_path: Path, measured: Callable[[str], None]
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    code, output = run_command(*lockstep_words(whole), timeout_s=120)
    assert code == 0, output

    first = start(*lockstep_words(killed))
    try:
        wait_until("a cut", lambda: newest_cut(killed / "r") >= 1_000, 90)
    finally:
        end(first)
    at = newest_cut(killed / "r")
    code, output = run_command(*lockstep_words(killed), timeout_s=120)

    assert code == 0, output
    assert "with the replay that was saved at" in output
    measured(f"killed after the cut at {at:,} of 2,500 agent steps: the same weights, bit by bit")
    assert at < 2_500
    assert final_hash(killed) == final_hash(whole)
