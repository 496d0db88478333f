"""What a run writes for other programs and says in its logs, with real processes."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from common.jsonl import read_jsonl
from tests.launched_run import LaunchedRun

pytestmark = [pytest.mark.integration, pytest.mark.slow]

AGENT_STEPS = 1_500


def test_a_run_leaves_curves_and_a_table_and_says_what_its_lines_are_about(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    parquet = pytest.importorskip("pyarrow.parquet")
    tools = ("--enable-tensorboard", "--parquet", "--max-agent-steps", str(AGENT_STEPS))
    run = LaunchedRun(tmp_path, *tools)
    try:
        ended = run.ended(time.monotonic(), deadline_s=110)
    finally:
        run.close()

    assert ended.code == 0, ended.output
    assert f"tensorboard --logdir {run.paths.tensorboard}" in ended.output
    (events,) = run.paths.tensorboard.iterdir()
    assert b"meta/started" in events.read_bytes()
    assert b"train/updates" in events.read_bytes()
    lines = list(read_jsonl(run.paths.metrics))
    table = parquet.read_table(run.paths.parquet)
    assert table["global_step"].to_pylist() == [float(str(line["global_step"])) for line in lines]
    assert lines[-1]["global_step"] == table["global_step"].to_pylist()[-1] >= AGENT_STEPS
    assert "[replay][stat] fill=" in run.log("replay_server-0")
    areas = {"learner-0": "train", "replay_server-0": "replay", "actor-0": "actor|env"}
    for peer, area in areas.items():
        log = run.log(peer)
        assert all(re.search(rf"\] \[({area})\]", line) for line in log.splitlines()), log
