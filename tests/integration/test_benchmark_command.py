"""`launch/benchmark.py env` as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from actor.env.core_choice import why_no_native_core

pytestmark = pytest.mark.integration
ROOT = Path(__file__).resolve().parents[2]


def test_the_benchmark_of_environments_measures_every_core_that_is_here() -> None:
    result = subprocess.run(
        [sys.executable, "launch/benchmark.py", "env", "--rounds", "3", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    rows = {row["contender"]: row for row in document["results"]["env"]}
    raw = rows["raw nes_py"]
    assert raw["ratio"] == 1.0
    assert raw["unit"] == "frame/s"
    assert 50 < raw["median"] < 50_000
    # Four frames of an agent step cost about as much as four raw ones.
    assert 0.4 < rows["MarioEnv on nes_py"]["ratio"] < 2.5
    plain = rows["plain wrapper chain on nes_py"]
    assert plain["unit"] == "agent step/s"
    assert plain["ratio"] == pytest.approx(4 * plain["median"] / raw["median"])
    assert 0.2 < plain["ratio"] < 1.2 * rows["MarioEnv on nes_py"]["ratio"]
    if not why_no_native_core():
        assert rows["native + gray 84x84"]["ratio"] > 5
        assert rows["native, new MarioEnv"]["ratio"] < 0.2
        assert rows["native, save + load"]["ratio"] < 1
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["commit"]
    named = " ".join((*rows, *document["notes"]))
    assert all(core in named for core in ("nes_py", "native", "FCEUmm"))
