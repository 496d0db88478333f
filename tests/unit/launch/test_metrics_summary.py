from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from common.errors import ExitCode
from launch.metrics_summary import main, read_run, summarise


def write_run(folder: Path, *, older: int = 0) -> Path:
    """Ten lines of a minute each; the first `older` of them in the file that was put aside."""
    folder.mkdir(parents=True)
    lines = [
        {
            "run_time_s": 60.0 * line,
            "global_step": 6_000 * line,
            "env_steps_per_sec": 100.0 + line,
            "updates": 300 * line,
            "updates_per_sec": 5.0,
            "avg_return": None if line == 10 else 0.5 * line,
            "clears_total": max(0, line - 5),
            "recent_clear_rate": line / 100,
            "env_max_x_pos": 300 * line,
            "bottleneck": "actors" if line < 4 else "learner",
        }
        for line in range(1, 11)
    ]
    texts = [f"{json.dumps(line)}\n" for line in lines]
    (folder / "metrics.jsonl").write_text("".join(texts[older:]))
    if older:
        (folder / "metrics.jsonl.1").write_text("".join(texts[:older]))
    rates = {
        ("1-1", 20_000): 0.25,
        ("1-2", 20_000): 0.75,
        ("1-1", 40_000): 0.5,
        ("1-2", 40_000): 0.3,
    }
    (folder / "eval.jsonl").write_text(
        "".join(
            f"{json.dumps({'stage': stage, 'global_step': step, 'clear_rate': rate})}\n"
            for (stage, step), rate in rates.items()
        )
    )
    return folder


@pytest.mark.parametrize("older", [0, 4])
def test_a_run_is_summed_up(tmp_path: Path, older: int) -> None:
    run = write_run(tmp_path / "a", older=older)

    found = summarise(str(run), read_run(run))

    assert (found.run, found.minutes, found.agent_steps, found.updates) == (
        "a",
        10.0,
        60_000,
        3_000,
    )
    assert found.agent_steps_per_s == pytest.approx(105.5)
    assert found.updates_per_s == 5.0
    # The last line knows no return, so the one before it counts.
    assert found.return_mean == 4.5
    assert (found.clears, found.clear_rate, found.best_x) == (5, 0.1, 3_000)
    assert found.bottleneck == "learner"
    assert found.eval_agent_steps == 40_000
    assert found.eval_clear_rate == pytest.approx(0.4)
    assert found.eval_best_clear_rate == 0.75


def test_table_and_csv_have_a_line_for_each_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [str(write_run(tmp_path / name)) for name in ("first", "second")]
    target = tmp_path / "summary.csv"

    assert main([*runs, "--csv", str(target)]) == 0

    shown = capsys.readouterr().out
    (row,) = [line for line in shown.splitlines() if "second" in line]
    assert row.split()[:5] == ["second", "10.0", "60,000", "105.5", "3,000"]
    assert row.split()[7:11] == ["5", "(10", "%)", "3,000"]
    assert row.split()[-5:] == ["learner", "40", "%", "(75", "%)"]
    with target.open(encoding="utf-8") as file:
        records = list(csv.DictReader(file))
    assert [record["run"] for record in records] == ["first", "second"]
    assert records[0]["eval_clear_rate"] == "0.4"


def test_torn_lines_are_passed_over_and_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "a")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('[1]\n{"run_time_s": 661')

    assert main([str(run)]) == 0

    shown = capsys.readouterr().out.replace("\n", "")
    assert "metrics.jsonl: 2 lines that are not whole were passed over" in shown
    assert summarise(str(run), read_run(run)).agent_steps == 60_000


def test_missing_files_are_named_and_the_others_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, bare = write_run(tmp_path / "whole"), write_run(tmp_path / "bare")
    (bare / "eval.jsonl").unlink()
    gone = tmp_path / "gone"

    assert main([str(whole), str(bare), str(gone)]) == 0

    shown = capsys.readouterr().out
    assert f"{bare / 'eval.jsonl'} is missing" in shown
    assert f"{gone / 'metrics.jsonl'} is missing" in shown
    assert any(line.split()[0] == "bare" for line in shown.splitlines() if line.strip())


def test_without_any_run_the_exit_code_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == ExitCode.CONFIGURATION
    assert "metrics.jsonl is missing" in capsys.readouterr().out
    assert main([]) == ExitCode.CONFIGURATION
    assert "which runs?" in capsys.readouterr().err


def test_a_csv_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = write_run(tmp_path / "a")

    assert main([str(run), "--csv", str(tmp_path / "none" / "x.csv")]) == ExitCode.CONFIGURATION
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{}\n", '{"run_time_s": true}\n', "\x00\xff\n"])
def test_files_that_say_nothing_make_no_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "metrics.jsonl").write_text(text)

    assert main([str(tmp_path)]) == ExitCode.CONFIGURATION
    assert "Traceback" not in capsys.readouterr().err
