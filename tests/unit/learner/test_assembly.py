"""What a start leaves on disk before it has learned anything."""

from __future__ import annotations

from pathlib import Path

import pytest

import learner.assembly
from common.abandoned import set_aside
from common.checkpoint_files import list_numbered
from common.config import Settings
from common.memory_transport import MemoryNetwork
from common.resume import find_resume
from common.run_paths import RunPaths
from learner.assembly import build, build_learner
from learner.checkpoint import checkpoint_of, write_checkpoint
from tests.run_factory import corridor_settings


def write_foreign(settings: Settings, folder: Path, agent_steps: int) -> Path:
    checkpoint = checkpoint_of(build_learner(settings), agent_steps=agent_steps, run={})
    return write_checkpoint(folder, checkpoint)


def start(settings: Settings, resume: Path | None) -> None:
    build(settings, MemoryNetwork(), resume=resume, is_alone=True).close()


def numbers(settings: Settings) -> list[int]:
    return [int(path.name) for path in list_numbered(RunPaths.of(settings.run).checkpoints)]


def test_a_start_writes_its_beginning_and_sets_what_came_later_aside(tmp_path: Path) -> None:
    settings = corridor_settings(tmp_path / "runs")
    write_foreign(settings, RunPaths.of(settings.run).checkpoints, 90)

    start(settings, write_foreign(settings, tmp_path / "elsewhere", 7))

    assert numbers(settings) == [7]


def test_a_kill_before_anything_is_set_aside_leaves_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = corridor_settings(tmp_path / "runs")
    write_foreign(settings, RunPaths.of(settings.run).checkpoints, 90)
    foreign = write_foreign(settings, tmp_path / "elsewhere", 7)
    seen: list[list[int]] = []
    monkeypatch.setattr(
        learner.assembly, "set_aside_newer", lambda *_: seen.append(numbers(settings))
    )

    start(settings, foreign)

    assert seen == [[90, 7]]


def test_a_start_from_nothing_abandons_nothing_silently(tmp_path: Path) -> None:
    settings = corridor_settings(tmp_path)
    write_foreign(settings, RunPaths.of(settings.run).checkpoints, 90)

    start(settings, None)

    point = find_resume(RunPaths.of(settings.run).root)
    assert point is not None
    assert point.agent_steps == 0
    assert list(RunPaths.of(settings.run).checkpoints.glob("abandoned-00000000090-*"))


def test_a_start_from_an_abandoned_checkpoint_stands_under_its_number_at_once(
    tmp_path: Path,
) -> None:
    """Or else a restart before the next checkpoint would go on from the other line."""
    settings = corridor_settings(tmp_path)
    folder = RunPaths.of(settings.run).checkpoints
    aside = set_aside(write_foreign(settings, folder, 90))
    write_foreign(settings, folder, 80)

    start(settings, aside)

    assert numbers(settings) == [90, 80]
