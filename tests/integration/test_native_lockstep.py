"""The native core against nes_py in real play: on every stage, frame by frame and as MarioEnv."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from tests.native import env_lockstep, lockstep
from tests.native.env_lockstep import random_tasks
from tests.native.frame_play import clear_tasks, share_out
from tests.native.recorded_clears import read_clears

pytestmark = pytest.mark.integration

PROCESSES = 2


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_fifty_thousand_frames_on_all_stages_are_equal() -> None:
    outcomes = lockstep.compare(share_out(50_000), PROCESSES, Console(quiet=True))

    assert [outcome.difference for outcome in outcomes if outcome.difference] == []
    assert sum(outcome.frames for outcome in outcomes) == 50_000


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_clears_to_the_flag_and_through_a_maze_are_equal() -> None:
    clears = [clear for clear in read_clears() if clear.stage in ("1-1", "4-4")]

    outcomes = lockstep.compare(clear_tasks(clears), PROCESSES, Console(quiet=True))

    assert [outcome.difference for outcome in outcomes] == ["", ""]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_observations_rewards_ends_and_infos_are_equal(tmp_path: Path) -> None:
    args = env_lockstep.LockstepArgs(journal=tmp_path, processes=PROCESSES)
    # Every sixth stage with both policies; the seeds are those of the long run.
    tasks = [replace(task, agent_steps=136) for task in random_tasks(128_000)[::6]]

    differences = env_lockstep.compare(tasks, args, Console(quiet=True))

    assert differences == []
    assert len(list(tmp_path.glob("*.journal"))) == len(tasks) == 11


@pytest.mark.nightly
@pytest.mark.timeout(4 * 3600)
def test_a_million_frames_are_equal(tmp_path: Path) -> None:
    assert lockstep.main(["--report", str(tmp_path / "report.json")]) == 0


@pytest.mark.nightly
@pytest.mark.timeout(6 * 3600)
def test_a_million_agent_steps_are_equal(tmp_path: Path) -> None:
    assert env_lockstep.main(["--agent-steps", "1000000", "--journal", str(tmp_path)]) == 0
