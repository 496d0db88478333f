from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from launch.healthy import main


def beat(run_dir: Path, peer: str, age_s: float) -> None:
    path = run_dir / "heartbeats" / f"{peer}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"time": time.time() - age_s}) + "\n", encoding="utf-8")


@pytest.mark.parametrize(("age_s", "code"), [(1.0, 0), (59.0, 0), (61.0, 75), (100_000.0, 75)])
def test_a_recent_heartbeat_is_a_sign_of_life(tmp_path: Path, age_s: float, code: int) -> None:
    beat(tmp_path, "actor-3", age_s)

    assert main(["actor-3", "--run-dir", str(tmp_path)]) == code


def test_a_process_that_was_not_heard_is_not_healthy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beat(tmp_path, "actor-3", 1.0)

    assert main(["actor-30", "--run-dir", str(tmp_path)]) == 75
    assert capsys.readouterr().out == "actor-30: no heartbeat yet\n"


def test_whoever_does_not_know_the_index_asks_for_the_newest_of_a_role(tmp_path: Path) -> None:
    beat(tmp_path, "actor-3", 1_000.0)
    beat(tmp_path, "relay-0", 1.0)
    before = main(["actor-any", "--run-dir", str(tmp_path)])
    beat(tmp_path, "actor-4", 1.0)

    assert before == 75
    assert main(["actor-any", "--run-dir", str(tmp_path)]) == 0


def test_a_longer_silence_may_be_allowed(tmp_path: Path) -> None:
    beat(tmp_path, "learner-0", 90.0)

    assert main(["learner-0", "--run-dir", str(tmp_path), "--max-age-s", "120"]) == 0


@pytest.mark.parametrize("words", [[], ["actor"], ["../etc"], ["actor-1", "--max-age-s", "0"]])
def test_what_is_no_process_is_refused(words: list[str]) -> None:
    assert main(words) == 2
