from __future__ import annotations

import json
from pathlib import Path

import pytest

from actor.env import ram as memory
from actor.env.native_core import NativeCore
from common.game import STAGES
from tests.native import frame_play, lockstep, twin_core
from tests.native.frame_play import FrameTask, Outcome, check, clear_tasks, play, share_out
from tests.native.recorded_clears import read_clears
from tests.native.twin_core import TwinCore

_STAR_TIMER = 0x079F


class ForgetfulCore(NativeCore):
    """Loses a byte of its RAM in the 300th frame."""

    frames = 0

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        super().step(buttons, frames, look=look)
        self.frames += frames
        if self.frames == 300:
            self.ram[0x07AD] ^= 1


class WatchedCore(NativeCore):
    star_frames = 0
    loads = 0

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        super().step(buttons, frames, look=look)
        self.star_frames += self.ram[_STAR_TIMER] > 0

    def load_state(self) -> None:
        super().load_state()
        self.loads += 1


@pytest.fixture
def _no_screens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and these tests are not about pictures."""
    monkeypatch.setattr(twin_core, "SCREEN_INTERVAL_FRAMES", 1_000_000)


@pytest.mark.parametrize("frames", [1, 50_000, 1_000_000])
def test_no_frame_is_lost_in_sharing_them_out(frames: int) -> None:
    assert sum(task.frames for task in share_out(frames)) == frames


@pytest.mark.parametrize("frames", [50_000, 1_000_000])
def test_every_stage_and_both_policies_are_played(frames: int) -> None:
    tasks = share_out(frames)

    assert {task.stage for task in tasks} == set(STAGES)
    assert {task.policy for task in tasks} == {"right", "uniform"}
    assert len({task.seed for task in tasks}) == len(tasks)


def test_of_a_million_frames_every_stage_has_twenty_thousand_in_one_go_and_two_drift() -> None:
    unbroken = [task for task in share_out(1_000_000) if task.is_unbroken]

    assert {task.stage for task in unbroken if task.frames > 20_000} == set(STAGES)
    assert sum(task.frames >= frame_play.DRIFT_FRAMES for task in unbroken) == 2


@pytest.mark.usefixtures("_no_screens")
def test_play_ends_at_its_last_frame_and_has_star_power_and_reloads() -> None:
    core = WatchedCore()
    twin = TwinCore(core, NativeCore())

    play(FrameTask(stage="1-1", seed=1, frames=3_000, is_unbroken=False), twin)

    assert twin.frames == 3_000
    assert core.star_frames > 50
    # The first one is of the start.
    assert core.loads > 2


@pytest.mark.usefixtures("_no_screens")
def test_unbroken_play_never_reloads_and_never_runs_out_of_lives() -> None:
    core = WatchedCore()

    play(FrameTask(stage="8-1", seed=1, frames=6_000), TwinCore(core, NativeCore()))

    assert core.loads == 1
    assert core.ram[0x0770] == 1


@pytest.mark.usefixtures("_no_screens")
def test_a_script_is_played_before_random_play() -> None:
    core = NativeCore()
    run_right = (0x82,) * 60

    task = FrameTask(stage="1-1", seed=1, frames=1, script=run_right)
    play(task, TwinCore(core, NativeCore()))

    assert core.ram[0x6D] * 256 + core.ram[0x86] > 250


@pytest.mark.usefixtures("_no_screens")
def test_a_clear_is_followed_into_the_next_stage() -> None:
    clear = next(clear for clear in read_clears() if clear.stage == "1-1")
    core = NativeCore()

    (task,) = clear_tasks([clear])
    play(task, TwinCore(core, NativeCore()))

    assert (memory.world(core.ram), memory.stage(core.ram)) == (1, 2)


@pytest.mark.usefixtures("_no_screens")
def test_a_difference_is_told_with_stage_seed_and_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame_play, "NesPyCore", NativeCore)
    monkeypatch.setattr(frame_play, "NativeCore", ForgetfulCore)
    task = FrameTask(stage="2-2", seed=7, frames=600)

    assert check(task).difference.startswith(
        "stage 2-2, seed 7, right, unbroken, frame 300: 1 bytes of RAM: $07AD is"
    )
    monkeypatch.setattr(frame_play, "NativeCore", NativeCore)
    assert check(task) == Outcome(task=task, frames=600, difference="")


@pytest.mark.parametrize(("difference", "exit_code"), [("", 0), ("frame 9: a byte", 1)])
def test_the_command_reports_and_ends_with_its_verdict(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, difference: str, exit_code: int
) -> None:
    task = FrameTask(stage="3-1", seed=4, frames=70)
    outcome = Outcome(task=task, frames=70, difference=difference)
    monkeypatch.setattr(lockstep, "compare", lambda *_: [outcome])
    path = tmp_path / "new" / "report.json"

    assert lockstep.main(["--frames", "70", "--report", str(path)]) == exit_code

    report = json.loads(path.read_text(encoding="utf-8"))
    assert report["frames"] == 70
    assert report["difference"] == (difference or None)
    assert report.get("seed") == (4 if difference else None)


@pytest.mark.parametrize("flag", ["--frames", "--processes"])
def test_wrong_settings_end_with_two(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert lockstep.main([flag, "0"]) == 2

    assert f"{flag} must be at least 1, got 0" in capsys.readouterr().err
