from __future__ import annotations

import json
from pathlib import Path

from common.errors import TraceInvalid
from common.trace_log import Circumstances, TraceLog, read_trace_log
from tests.native.recorded_clears import read_clears

CLEARS = read_clears()[:2]
WHEN = Circumstances(peer="actor-0", agent_steps=5, weight_version=7, episode_return=1.5)


def test_traces_come_back_as_they_were_written(tmp_path: Path) -> None:
    log = TraceLog(tmp_path / "traces" / "actor-0.jsonl")
    for clear in CLEARS:
        log.write(clear, WHEN)
    log.close()

    assert list(read_trace_log(tmp_path / "traces" / "actor-0.jsonl")) == list(CLEARS)
    assert log.written == 2
    record = json.loads((tmp_path / "traces" / "actor-0.jsonl").read_text().splitlines()[0])
    assert (record["peer"], record["agent_steps"], record["weight_version"]) == ("actor-0", 5, 7)


def test_without_a_clear_there_is_no_file(tmp_path: Path) -> None:
    TraceLog(tmp_path / "actor-0.jsonl").close()

    assert list(tmp_path.iterdir()) == []


def test_a_torn_last_line_is_skipped_and_a_damaged_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "actor-0.jsonl"
    log = TraceLog(path)
    log.write(CLEARS[0], WHEN)
    log.close()
    whole = path.read_bytes()
    path.write_bytes(b'{"trace": {"kind"\n{"trace": 5}\n[]\n' + whole + whole[:50])

    *damaged, last = read_trace_log(path)

    assert last == CLEARS[0]
    assert all(isinstance(one, TraceInvalid) for one in damaged)
    places = [str(one).partition(":")[0].rpartition(", ")[2] for one in damaged]
    assert places == ["line 1", "line 2", "line 3"]


def test_a_clear_that_cannot_be_written_down_does_not_stop_the_play(tmp_path: Path) -> None:
    (tmp_path / "traces").write_text("a file where a folder should be")
    log = TraceLog(tmp_path / "traces" / "actor-0.jsonl")

    log.write(CLEARS[0], WHEN)

    assert log.written == 0
    log.close()
