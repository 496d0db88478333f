"""Memory that runs out in a real run: the launcher goes on with less, and not for ever."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.launched_run import LaunchedRun

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

DEADLINE_S = 200.0
SMALL = ("--auto-mem", "--learning-starts", "100", "--batch-size", "16")


def settings_of(run: LaunchedRun) -> dict[str, dict[str, object]]:
    content = json.loads(run.paths.config.read_text(encoding="utf-8"))
    return content["settings"]  # type: ignore[no-any-return] # as written by the launcher


def test_a_run_that_ran_out_of_memory_resumes_one_rung_lower(tmp_path: Path) -> None:
    faults = {"out_of_memory_at_agent_step": 300, "once_file": str(tmp_path / "once")}
    words = (*SMALL, "--actors", "1", "--capacity", "4000", "--max-agent-steps", "1500")
    run = LaunchedRun(tmp_path, *words, faults=faults)
    try:
        ended = run.ended(time.monotonic(), DEADLINE_S)
    finally:
        run.close()

    assert ended.code == 0, ended.output
    assert "\nactor-0: out of memory" in ended.output, ended.output
    assert "auto-mem: rung 1 down: capacity 4000 -> 2000; resumes from " in ended.output
    assert "rung 2" not in ended.output
    assert settings_of(run)["replay"]["capacity"] == 2_000
    assert "one rung less memory" in run.log()
    # It went on, it did not begin anew.
    assert " resumed path=" in run.log("learner-0")


@pytest.mark.nightly
def test_a_run_that_never_fits_ends_after_the_last_rung(tmp_path: Path) -> None:
    words = (*SMALL, "--actors", "1", "--capacity", "400", "--max-agent-steps", "100000")
    run = LaunchedRun(tmp_path, *words, faults={"out_of_memory_at_agent_step": 50})
    try:
        ended = run.ended(time.monotonic(), DEADLINE_S)
    finally:
        run.close()

    assert ended.code == 75, ended.output
    assert "auto-mem: rung 1 down: capacity 400 -> 200; resumes from " in ended.output
    assert "auto-mem: no rung is left; free some memory, then start again" in ended.output
    assert "the run ended: actor-0 ran out of memory" in ended.output
