from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from common.config import Settings
from common.messages import Stats
from common.run_paths import RunPaths
from launch import control
from launch.run_dir import write_config

ANSWER = Stats(values={"size": 12, "ratio": 0.5})


@pytest.fixture
def run(tmp_path: Path) -> str:
    write_config(RunPaths(tmp_path), Settings())
    return str(tmp_path)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--timeout-s", "-1"], "--timeout-s must be greater than 0"),
        (["--timeout-s", "0"], "--timeout-s must be greater than 0"),
        (["--timeout-s", "nan"], "--timeout-s must be greater than 0"),
        (["--timeout-s", "1e9"], "--timeout-s must be between 0 and 604800"),
        (["--samples-per-insert", "nan"], "--samples-per-insert must be at least 0 and finite"),
        (["--samples-per-insert", "inf"], "--samples-per-insert must be at least 0 and finite"),
        (["--samples-per-insert", "-2"], "--samples-per-insert must be at least 0 and finite"),
    ],
)
def test_values_that_make_no_sense_are_refused_in_one_line(
    run: str, words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert control.main([run, *words]) == 2

    (line,) = capsys.readouterr().err.splitlines()
    assert expected in line


def test_an_answer_is_shown_as_a_table(
    run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "ask", lambda *_: ANSWER)

    assert control.main([run]) == 0

    assert "12" in next(line for line in capsys.readouterr().out.splitlines() if "size" in line)


def test_ctrl_c_ends_it_without_a_traceback(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(control, "ask", interrupted)

    assert control.main([run]) == 130


def test_nobody_who_reads_the_answer_is_no_error(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "ask", lambda *_: ANSWER)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr(sys, "stdout", closed)

        assert control.main([run]) == 0
