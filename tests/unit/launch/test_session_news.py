from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from common.config import DiagnosisSettings, RunSettings, Settings
from common.lifecycle import StopFlag
from common.run_paths import RunPaths
from launch.live_view import open_view
from launch.session import Session

SETTINGS = Settings(run=RunSettings(device="cpu"))
WAITING = {"wait_share_learner": 0.9, "wait_share_actors": 0.1, "wait_share_replay": 0.9}


class Terminal:
    """A session whose run writes lines of metrics, with what a person would see."""

    def __init__(self, folder: Path, settings: Settings = SETTINGS, *, is_live: bool) -> None:
        self.paths = RunPaths(folder)
        self.screen = io.StringIO()
        console = Console(file=self.screen, force_terminal=is_live, width=100)
        self.session = Session(
            settings=settings,
            paths=self.paths,
            console=console,
            stop=StopFlag(),
            plain=not is_live,
            resume=None,
        )
        self.view = open_view(console, plain=not is_live)

    def wait_for_actors(self) -> str:
        """A minute in which the learner waits; what was printed."""
        for index in range(12):
            values = {"run_time_s": 5.0 * index, "updates": 10 * index, "replay_push_total": index}
            self.paths.metrics.write_text(json.dumps({**values, **WAITING}) + "\n")
            self.session.show(self.view, [])
        self.view.close()
        return self.screen.getvalue()


@pytest.mark.parametrize("is_live", [False, True])
def test_a_hint_is_one_whole_line_above_the_view(tmp_path: Path, *, is_live: bool) -> None:
    seen = Terminal(tmp_path, is_live=is_live).wait_for_actors()

    (hint,) = [line for line in seen.splitlines() if "[train][hint]" in line]
    assert "the learner waits 90 % of its time for the actors" in hint
    assert "more --samples-per-insert" in hint


def test_hints_can_be_switched_off(tmp_path: Path) -> None:
    silent = replace(SETTINGS, diagnosis=DiagnosisSettings(hints=False))

    assert "[hint]" not in Terminal(tmp_path, silent, is_live=False).wait_for_actors()


def test_the_last_line_of_an_earlier_start_is_no_evidence(tmp_path: Path) -> None:
    earlier = {"run_time_s": 900.0, "updates": 5, "global_step": 7}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(earlier) + "\n")
    terminal = Terminal(tmp_path, is_live=False)

    terminal.session.show(terminal.view, [])

    assert "steps=-" in terminal.screen.getvalue()
    assert len(terminal.session._advisor._lines) == 0


def test_places_for_other_programs_are_announced(tmp_path: Path) -> None:
    chosen = replace(SETTINGS, diagnosis=DiagnosisSettings(enable_tensorboard=True))
    terminal = Terminal(tmp_path, chosen, is_live=False)

    with terminal.session.exporting():
        pass

    assert f"tensorboard --logdir {tmp_path / 'tensorboard'}" in terminal.screen.getvalue()
