from __future__ import annotations

from pathlib import Path

import pytest

from common.config import RunSettings, Settings
from common.run_paths import RunPaths
from common.settings_files import load_settings
from learner.main import describe_run


def test_a_run_without_a_launcher_is_described_for_readers_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings(run=RunSettings(run="r", runs_dir="runs"))
    RunPaths.of(settings.run).root.mkdir(parents=True)

    describe_run(settings)

    stored = load_settings(tmp_path / "runs" / "r" / "config.json")
    assert stored.run.runs_dir == str(tmp_path / "runs")
    assert stored.endpoints == settings.endpoints


def test_what_a_launcher_has_written_stays(tmp_path: Path) -> None:
    settings = Settings(run=RunSettings(run="r", runs_dir=str(tmp_path)))
    paths = RunPaths.of(settings.run)
    paths.root.mkdir()
    paths.config.write_text("{}")

    describe_run(settings)

    assert paths.config.read_text() == "{}"
