from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from common.config import RunSettings, Settings
from common.lifecycle import StopFlag
from common.run_paths import RunPaths
from launch.session import Session


def session_of(folder: Path, **limits: Any) -> Session:
    run = replace(RunSettings(runs_dir=str(folder)), **limits)
    paths = RunPaths.of(run)
    paths.root.mkdir()
    return Session(
        settings=Settings(run=run),
        paths=paths,
        console=Console(quiet=True),
        stop=StopFlag(),
        plain=True,
        resume=None,
    )


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        ({}, None),
        ({"max_updates": 400}, 0.25),
        ({"max_agent_steps": 2_000}, 0.5),
        ({"max_updates": 200, "max_agent_steps": 4_000}, 0.5),
    ],
)
def test_the_bar_shows_the_limit_that_is_nearest(
    tmp_path: Path, limits: dict[str, Any], share: float | None
) -> None:
    session = session_of(tmp_path, **limits)
    session.paths.metrics.write_text(json.dumps({"global_step": 1_000, "updates": 100}) + "\n")

    assert session.snapshot([]).budget == share


def test_a_bar_without_figures_is_that_of_the_clock(tmp_path: Path) -> None:
    session = session_of(tmp_path, max_updates=10, max_minutes=1.0)
    session.started_s -= 30.0

    assert session.snapshot([]).budget == pytest.approx(0.5, abs=0.1)
