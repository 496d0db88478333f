from __future__ import annotations

import errno
import os
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from common.config import CoreName, EnvSettings, Settings
from common.errors import CoreUnavailable
from common.resume import ResumePoint
from common.run_paths import RunPaths
from launch import local
from launch.local import announce_start, settle_core
from launch.options import parse_local
from launch.resume_choice import changed_settings
from launch.run_dir import make_run_dir, write_config


def settle(core: CoreName, game: str = "mario") -> tuple[EnvSettings, list[str]]:
    """The settled settings and the lines that were printed."""
    output = StringIO()
    env = EnvSettings(core=core, game="mario" if game == "mario" else "corridor")
    settled = settle_core(Settings(env=env), Console(file=output, width=80))
    return settled.env, output.getvalue().splitlines()


@pytest.fixture
def no_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "actor.env.native._console", None)


def test_the_default_core_tells_in_one_line_of_the_faster_one() -> None:
    env, lines = settle("nes_py")

    assert env.core == "nes_py"
    (line,) = lines
    assert "--core native plays the same game many times faster" in line


@pytest.mark.usefixtures("no_extension")
def test_the_default_core_tells_nothing_where_there_is_no_faster_one() -> None:
    assert settle("nes_py") == (EnvSettings(core="nes_py"), [])


@pytest.mark.parametrize("core", ["native", "auto"])
def test_auto_becomes_native_without_a_word(core: CoreName) -> None:
    assert settle(core) == (EnvSettings(core="native"), [])


@pytest.mark.usefixtures("no_extension")
def test_auto_falls_back_with_one_line_that_says_why() -> None:
    env, lines = settle("auto")

    assert env.core == "nes_py"
    (line,) = lines
    assert line.startswith("WARNING: playing on nes_py")
    assert "_console halted" in line


@pytest.mark.usefixtures("no_extension")
def test_a_native_core_that_was_asked_for_and_is_missing_ends_the_start() -> None:
    with pytest.raises(CoreUnavailable, match=r"pip install --no-deps -e \."):
        settle("native")


@pytest.mark.usefixtures("no_extension")
def test_the_corridor_has_no_core_to_settle() -> None:
    assert settle("auto", "corridor") == (EnvSettings(core="auto", game="corridor"), [])


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (EnvSettings(core="native", stage="4-2"), "stage 4-2, core native, device"),
        (EnvSettings(game="corridor"), "environments, corridor, device"),
    ],
)
def test_the_first_line_names_the_core(env: EnvSettings, words: str, tmp_path: Path) -> None:
    output = StringIO()
    settings = Settings(env=env)

    announce_start(settings, RunPaths(tmp_path), None, Console(file=output, width=80))

    assert words in output.getvalue().splitlines()[0]


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("first/checkpoints/00000000005", " at 5 agent steps, the newest"),
        (
            "other/checkpoints/00000000005",
            " at 5 agent steps, of run other, not of first, the newest",
        ),
        ("copies/00000000005", " at 5 agent steps, of run copies, not of first, the newest"),
    ],
)
def test_going_on_from_another_runs_checkpoint_is_said_plainly(
    tmp_path: Path, folder: str, words: str
) -> None:
    output, path = StringIO(), tmp_path / folder
    resume = ResumePoint(path=path, agent_steps=5, source="search")

    paths = RunPaths(tmp_path / "first")
    announce_start(Settings(), paths, resume, Console(file=output, width=80))

    assert f"going on from {path}{words}" in output.getvalue()


def test_a_run_may_go_on_with_another_core(tmp_path: Path) -> None:
    settings = Settings(env=EnvSettings(core="nes_py"))
    run = replace(settings.run, runs_dir=str(tmp_path))
    paths = RunPaths.of(run)
    make_run_dir(paths)
    write_config(paths, replace(settings, run=run))

    changed = changed_settings(paths, Settings(env=EnvSettings(core="native"), run=run))

    assert changed == {"core": ("nes_py", "native")}


@pytest.mark.parametrize(
    ("preset", "core"), [("laptop", "auto"), ("workstation", "auto"), ("smoke", "nes_py")]
)
def test_presets_for_training_take_the_fastest_core(preset: str, core: str) -> None:
    assert parse_local(["--preset", preset, "--fresh"]).settings.env.core == core


@pytest.mark.parametrize(
    ("number", "code"), [(errno.EIO, 75), (errno.EMFILE, 75), (errno.EACCES, 2), (errno.EROFS, 2)]
)
def test_an_error_of_the_system_that_nobody_foresaw_is_one_line_with_the_path(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
    code: int,
) -> None:
    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number), "/some/folder")

    monkeypatch.setattr("os.umask", lambda _: 0)
    monkeypatch.setattr(local, "make_run_dir", fail)
    words = ["--runs-dir", str(tmp_path), "--device", "cpu", "--game", "corridor"]

    assert local.main(words) == code

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"python launch/local.py: /some/folder: {os.strerror(number)}; ")
