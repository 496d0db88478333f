"""What an actor that is started by hand says about the core that it plays on."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from actor.assembly import build
from actor.env import core_choice
from common.config import ActorSettings, CoreName, EnvSettings, RunSettings, Settings
from common.memory_transport import MemoryNetwork

pytestmark = pytest.mark.integration


def settings_with(core: CoreName, folder: Path) -> Settings:
    return Settings(
        run=RunSettings(runs_dir=str(folder)),
        env=EnvSettings(core=core, stage="1-1"),
        actor=ActorSettings(actors=1, envs_per_actor=2),
    )


def said_by_an_actor(settings: Settings, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The log lines about cores, as `level phrase core`."""
    with caplog.at_level(logging.INFO):
        build(settings, MemoryNetwork(), 0).close()
    return [
        f"{record.levelname} {record.getMessage()} {extra.get('core', '')}"
        for record in caplog.records
        if (extra := record.__dict__) and ("core" in extra or "playing on" in record.getMessage())
    ]


def test_auto_names_the_core_that_it_became(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = said_by_an_actor(settings_with("auto", tmp_path), caplog)

    assert lines == ["INFO environments ready native"]


def test_a_fallback_is_told_once_however_many_environments(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "actor.env.native._console", None)
    core_choice._tell_fallback.cache_clear()

    lines = said_by_an_actor(settings_with("auto", tmp_path), caplog)

    assert len(lines) == 2
    assert lines[0].startswith("WARNING playing on nes_py: the native core was not built")
    assert lines[1] == "INFO environments ready nes_py"
