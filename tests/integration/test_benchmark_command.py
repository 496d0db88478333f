"""`launch/benchmark.py` as a person runs it."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from actor.env.core_choice import why_no_native_core
from launch.benchmark import BenchArgs, chosen

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


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(1_200)
def test_all_that_the_readme_promises_is_measured(tmp_path: Path) -> None:
    """tests/e2e/test_readme.py runs `env` in its place: this takes minutes."""
    result = subprocess.run(
        [sys.executable, "launch/benchmark.py", "all", "--quick", "--json", "--csv", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1_100,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert list(document["results"]) == chosen(BenchArgs(quick=True))
    for name, rows in document["results"].items():
        assert rows, name
        assert all(math.isfinite(row["median"]) for row in rows), name
        assert any(row["median"] > 0 for row in rows), name
        assert len(list(tmp_path.glob(f"bench_{name}_*.csv"))) == 1, name
    assert not any(note.startswith("not measured") for note in document["notes"])


def test_ctrl_c_is_one_line_that_says_what_was_not_measured() -> None:
    process = subprocess.Popen(
        [sys.executable, "launch/benchmark.py", "per", "--rounds", "1000000"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        machine = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()

    assert "commit" in machine
    assert process.returncode == 130
    assert said == "[benchmark] stopped; not measured: per\n"
