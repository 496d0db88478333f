"""A run that saves its replay: killed and resumed, it is the run that was never interrupted."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered
from common.config import Settings
from common.run_paths import RunPaths
from launch.lockstep import Lockstep
from tests.run_factory import corridor_settings
from tests.run_state import counters, newest, tensor_hash

pytestmark = pytest.mark.integration

AGENT_STEPS, INTERVAL = 900, 150


def settings_of(folder: Path) -> Settings:
    return corridor_settings(
        folder,
        {
            "run": {"max_agent_steps": AGENT_STEPS, "seed": 5},
            "replay": {"checkpoint_replay": True},
            "evaluation": {"eval_interval_agent_steps": INTERVAL},
        },
    )


class Killed(Exception):
    """As a kill would: nothing is finished, nothing is saved."""


def run_until_killed(settings: Settings, ticks: int, resume: Path | None = None) -> None:
    left = ticks

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed

    with pytest.raises(Killed):
        Lockstep(settings, resume=resume).run(lambda: False, count)


def checkpoints(settings: Settings) -> list[Path]:
    return list_numbered(RunPaths.of(settings.run).checkpoints)


def test_a_killed_and_resumed_run_is_the_one_that_was_never_interrupted(tmp_path: Path) -> None:
    whole, interrupted = settings_of(tmp_path / "whole"), settings_of(tmp_path / "interrupted")
    Lockstep(whole).run(lambda: False, lambda: None)

    run_until_killed(interrupted, ticks=130)
    first = checkpoints(interrupted)[0]
    run_until_killed(interrupted, ticks=150, resume=first)
    second = checkpoints(interrupted)[0]
    Lockstep(interrupted, resume=second).run(lambda: False, lambda: None)

    assert 0 < int(first.name) < int(second.name) < AGENT_STEPS
    assert counters(newest(interrupted)) == counters(newest(whole))
    assert counters(newest(whole))["updates"] > 50
    assert tensor_hash(newest(interrupted)) == tensor_hash(newest(whole))


def test_without_its_replay_a_resumed_run_is_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole, interrupted = settings_of(tmp_path / "whole"), settings_of(tmp_path / "interrupted")
    Lockstep(whole).run(lambda: False, lambda: None)
    run_until_killed(interrupted, ticks=130)
    for page in (RunPaths.of(interrupted.run).replay / "pages").iterdir():
        page.write_bytes(b"")

    with caplog.at_level(logging.WARNING):
        Lockstep(interrupted, resume=checkpoints(interrupted)[0]).run(lambda: False, lambda: None)

    assert "saved replay passed over" in caplog.text
    assert "it begins empty" in caplog.text
    assert tensor_hash(newest(interrupted)) != tensor_hash(newest(whole))
