from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from launch.live_view import LiveView, PlainView, ProcessRow, Snapshot, open_view, plain_line

METRICS = {
    "global_step": 12_345,
    "env_steps_per_sec": 151.25,
    "updates": 700,
    "replay_fill_rate": 0.25,
    "env_max_x_pos": 1_401,
    "clears_total": 2,
}


def snapshot(elapsed_s: float = 65.0, budget: float | None = 0.5) -> Snapshot:
    rows = [
        ProcessRow(name="learner-0", state="running", restarts=0, beat={"state": "training"}),
        ProcessRow(name="actor-0", state="waiting", restarts=3, beat={}),
        ProcessRow(name="actor-1", state="off", restarts=5, beat={}),
    ]
    return Snapshot(
        run="first",
        stages=("1-1",),
        elapsed_s=elapsed_s,
        budget=budget,
        metrics=METRICS,
        processes=rows,
    )


def test_a_plain_line_says_what_matters() -> None:
    line = plain_line(snapshot())

    for part in ("[train] 00:01:05", "steps=12,345", "fill=25 %", "best_x=1,401", "clears=2"):
        assert part in line
    assert line.endswith("processes=1/3 restarts=8 done=50 %")


def test_without_a_terminal_lines_are_rare() -> None:
    screen = io.StringIO()
    view = open_view(Console(file=screen), plain=False)

    for second in range(25):
        view.show(snapshot(elapsed_s=float(second)))
    view.close()

    assert isinstance(view, PlainView)
    assert len(screen.getvalue().splitlines()) == 3


def test_the_live_view_shows_figures_and_every_process() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=110)
    view = open_view(console, plain=False)

    view.show(snapshot())
    view.close()

    assert isinstance(view, LiveView)
    for part in ("12,345", "1,401", "learner-0", "training", "actor-1", "off", "50 %"):
        assert part in screen.getvalue()


def test_a_new_run_without_figures_can_be_shown() -> None:
    empty = Snapshot(run="r", stages=("1-1",), elapsed_s=0.0, budget=None, metrics={}, processes=[])

    assert "steps=-" in plain_line(empty)


def test_a_silent_process_is_shown_as_such() -> None:
    row = ProcessRow(
        name="actor-0", state="running", restarts=0, beat={"state": "playing"}, silent_s=31.0
    )
    quiet = replace(snapshot(), processes=[row])
    screen = io.StringIO()
    view = LiveView(Console(file=screen, force_terminal=True, width=110))

    view.show(quiet)
    view.close()

    assert "silent for 31 s" in screen.getvalue()
    assert "processes=0/1" in plain_line(quiet)


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")

    view = open_view(Console(file=io.StringIO(), force_terminal=True), plain=False)

    assert isinstance(view, PlainView)
