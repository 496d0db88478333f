"""The agent in docs/models does what its own files say."""

from __future__ import annotations

import json

import pytest

from common.evaluation import wilson_interval
from common.jsonl import read_jsonl
from tests.processes import ROOT, run

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300)]

MODEL = ROOT / "docs" / "models" / "1-1"


def stated() -> dict[str, object]:
    (line,) = read_jsonl(MODEL / "eval.jsonl")
    return line


def test_its_clear_rate_is_reproduced_within_the_interval() -> None:
    code, output = run("launch/evaluate.py", str(MODEL), "--json", "--seed", "11", timeout_s=200)

    assert code == 0, output
    (score,) = json.loads(output)["stages"]
    low, high = wilson_interval(int(str(stated()["clears"])), int(str(stated()["episodes"])))
    # Two samples of the same share: their intervals overlap.
    assert score["clear_rate_low"] <= high
    assert score["clear_rate_high"] >= low
    assert score["episodes"] == stated()["episodes"] == 100


def test_its_clears_reach_the_flag() -> None:
    code, output = run("launch/verify.py", str(MODEL), "--core", "native", timeout_s=100)

    assert code == 0, output


def test_the_clears_of_four_stages_reach_the_flag() -> None:
    clears = ROOT / "docs" / "data" / "four-stages" / "clears.jsonl"

    code, output = run("launch/verify.py", str(clears), "--core", "native", timeout_s=100)

    assert (code, output.strip()) == (0, "4 of 4 traces reach the flag (1-1, 1-4, 2-2, 2-3)")


def test_judging_it_leaves_it_as_it_is() -> None:
    before = sorted(path for path in MODEL.rglob("*"))

    run("launch/evaluate.py", str(MODEL), "--episodes", "2", timeout_s=100)

    assert sorted(path for path in MODEL.rglob("*")) == before
