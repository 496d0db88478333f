from __future__ import annotations

import json
from pathlib import Path

import pytest

from common.errors import ExitCode
from launch import compare
from launch.compare import keep_curves, main, summaries
from launch.run_curves import read_runs


def write_run(folder: Path, rates: dict[int, float], *, seconds_per_line: float = 5.0) -> Path:
    """A run of 1,000 agent steps and 100 updates a line whose first clear is in line 3."""
    folder.mkdir(parents=True)
    metrics = [
        {
            "run_time_s": seconds_per_line * line,
            "global_step": 1000 * line,
            "updates": 100 * line,
            "clears_total": max(0, line - 2),
        }
        for line in range(1, 41)
    ]
    evaluations = [
        {
            "global_step": steps,
            "weight_version": steps // 10,
            "stage": "1-1",
            "clear_rate": rate,
            "clear_rate_low": 0.0,
            "clear_rate_high": 1.0,
            "x_p50": 100.0,
        }
        for steps, rate in rates.items()
    ]
    for name, lines in (("metrics.jsonl", metrics), ("eval.jsonl", evaluations)):
        (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


RATES = {10_000: 0.0, 20_000: 0.6, 24_000: 0.95, 30_000: 0.9, 36_000: 1.0}


def test_the_first_evaluation_over_each_bar_is_found(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", RATES)

    (summary,) = summaries("a", read_runs([str(run)])["a"])

    assert summary.first_clear is not None
    assert (summary.first_clear.agent_steps, summary.first_clear.minutes) == (3000, 0.25)
    assert summary.half is not None
    assert (summary.half.agent_steps, summary.half.updates) == (20_000, 2000)
    assert summary.reliable is not None
    assert (summary.reliable.agent_steps, summary.reliable.minutes) == (24_000, 2.0)
    assert summary.best_rate == 1.0
    assert summary.last_rate == pytest.approx(0.95)


def test_a_run_that_never_gets_there_has_no_moment(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", {10_000: 0.1, 20_000: 0.4})

    (summary,) = summaries("a", read_runs([str(run)])["a"])

    assert summary.half is summary.reliable is None
    assert summary.last_rate == pytest.approx(0.25)


def test_kept_curves_say_the_same_in_fewer_lines(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", RATES)

    keep_curves(run, tmp_path / "kept")

    kept = read_runs([str(tmp_path / "kept" / "a")])["a"]
    whole = read_runs([str(run)])["a"]
    assert len(kept.metrics) < len(whole.metrics) / 2
    assert summaries("a", kept) == summaries("a", whole)
    assert kept.evaluations == whole.evaluations


def test_a_run_is_never_overwritten_by_its_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "a", RATES)

    assert main([str(run), "--keep", str(tmp_path)]) == ExitCode.CONFIGURATION

    assert "would overwrite" in capsys.readouterr().err
    assert len(read_runs([str(run)])["a"].metrics) == 40


def test_table_and_json_name_every_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(write_run(tmp_path / name, RATES)) for name in ("first", "second")]

    assert main([*runs]) == 0
    shown = capsys.readouterr().out
    assert "first" in shown
    assert "2.0m 24k" in shown
    assert main([*runs, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["run"] for row in rows] == ["first", "second"]
    assert rows[0]["reliable"]["agent_steps"] == 24_000


def test_runs_of_the_same_name_stay_apart(tmp_path: Path) -> None:
    runs = [str(write_run(tmp_path / folder / "x", RATES)) for folder in ("a", "b")]

    assert list(read_runs(runs)) == ["x", runs[1]]


def test_a_folder_that_is_no_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == ExitCode.CONFIGURATION
    assert "metrics.jsonl" in capsys.readouterr().err


def test_lines_that_lack_their_place_are_left_out(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", RATES)
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"updates": 3}\n{"global_step": 9, "run_time_s": null}\n')

    (summary,) = summaries("a", read_runs([str(run)])["a"])

    assert summary.agent_steps == 40_000


def test_ctrl_c_ends_it_without_a_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "summaries", interrupted)

    assert main([str(write_run(tmp_path / "a", RATES))]) == int(ExitCode.INTERRUPTED)
    assert capsys.readouterr() == ("", "")
