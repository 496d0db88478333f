"""What benchmarks read from the files of a run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.config import Settings
from common.errors import BenchmarkFailed
from common.phases import PHASES
from common.run_paths import RunPaths
from launch.benchmarks import runs, startup
from launch.benchmarks.measure import Effort
from launch.benchmarks.overlap import COLUMNS, line_of
from launch.benchmarks.pipeline import share_rows
from launch.benchmarks.runs import RunFigures, read_figures, require_figures
from launch.benchmarks.shares_picture import draw
from launch.benchmarks.startup import (
    LAUNCH,
    QUICK_COMMANDS,
    ActorCost,
    Start,
    StartPlan,
    all_commands,
    start_rows,
)


def write_lines(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def figures(tmp_path: Path) -> RunFigures:
    """A run that learned from second 100 on."""
    paths = RunPaths(tmp_path / "r")
    metrics: list[dict[str, object]] = [
        {"time": 90.0, "global_step": 0, "updates": 0, "replay_fill_rate": 0.1},
        {"time": 100.0, "global_step": 1_000, "updates": 10, "replay_fill_rate": 0.5},
        {"time": 104.0, "global_step": 1_800, "updates": 50, "replay_fill_rate": None},
    ]
    write_lines(paths.metrics, metrics)
    for index, share in ((0, 0.2), (1, 0.4)):
        beats = [
            {"time": 95.0, "share_wait": 1.0},
            {"time": 101.0, "share_wait": share, "share_emulator": 0.5},
        ]
        write_lines(paths.process_heartbeat(f"actor-{index}"), beats)
    beat = {"time": 101.0, "share_wait": 0.1, "share_forward": 0.4, "share_backward": 0.3}
    write_lines(paths.process_heartbeat("learner-0"), [beat])
    return read_figures(paths, 100.0, 5.0)


def test_rates_are_those_of_the_time_in_which_it_learned(figures: RunFigures) -> None:
    assert figures.per_second("global_step") == pytest.approx(200.0)
    assert figures.per_second("updates") == pytest.approx(10.0)


def test_one_reading_is_no_rate() -> None:
    assert RunFigures(metrics=[{"time": 1.0}], beats={}, duration_s=1.0).per_second("x") == 0.0


def test_a_value_that_is_not_told_again_is_the_last_known(figures: RunFigures) -> None:
    assert figures.last("replay_fill_rate") == 0.5
    assert figures.last("gpu_util_mean_window") is None


def test_shares_are_those_of_all_processes_of_a_part_and_leave_a_rest(figures: RunFigures) -> None:
    actors, learner = figures.shares("actors"), figures.shares("learner")

    assert actors["wait"] == [0.2, 0.4]
    assert actors["other"] == pytest.approx([0.3, 0.1])
    assert learner["other"] == pytest.approx([0.2])
    assert learner.keys() == {*PHASES["learner"], "other"}
    assert figures.shares("replay")["wait"] == []


def test_a_table_has_a_row_for_every_phase_that_was_told(figures: RunFigures) -> None:
    shares = {part: figures.shares(part) for part in ("actors", "replay", "learner")}

    rows = share_rows("ours", shares)

    names = [row.contender for row in rows]
    assert names[0] == "ours: actors: emulator"
    assert "ours: learner: forward" in names
    assert not any(name.startswith("ours: replay") for name in names)


def test_the_picture_is_drawn(figures: RunFigures, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    shares = {"actors": figures.shares("actors")}

    draw({"one": shares, "another": shares}, str(tmp_path / "p.png"))

    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("count", [0, 1])
def test_a_run_that_told_too_little_for_a_rate_is_an_error(count: int) -> None:
    told = RunFigures(metrics=[{"time": 1.0}] * count, beats={}, duration_s=1.0)

    with pytest.raises(BenchmarkFailed, match=f"it wrote {count} lines"):
        require_figures(told, "it")


def test_a_window_ends_when_two_lines_were_written_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines before it, of a run that has learned for long, are not its own."""
    paths = RunPaths(tmp_path / "r")
    old = {"time": 1.0, "global_step": 10, "updates": 5}
    lines: list[Mapping[str, object]] = [old, old, old]
    write_lines(paths.metrics, lines)
    asked = 0

    def wait(what: str, condition: Callable[[], bool], _deadline_s: float) -> None:
        nonlocal asked
        while not condition():
            asked += what == "the end of the window"
            lines.append({"time": time.time(), "global_step": 10 * len(lines), "updates": 9})
            write_lines(paths.metrics, lines)

    scene = SimpleNamespace(
        paths=paths,
        wait_until=wait,
        pause=lambda _s: None,
        processes={runs.LAUNCHER: SimpleNamespace(pid=os.getpid())},
    )
    monkeypatch.setattr(runs, "launched", lambda *_, **__: nullcontext(scene))
    monkeypatch.setattr(runs, "load_settings", lambda _path: Settings())

    figures = runs.watch_run((), 0.0)

    assert asked == 2
    assert len(figures.metrics) == 2
    assert figures.batch_size == Settings().learner.batch_size


def test_the_lines_of_overlap_have_the_promised_columns(figures: RunFigures) -> None:
    line = line_of("parallel", 2, 32, figures)

    assert tuple(line) == COLUMNS
    assert list(line.values()) == ["parallel", 2, 32, 200.0, 10.0, 0.5, None, 5.0]


def test_every_command_of_the_launch_folder_is_asked_for_help() -> None:
    programs = {
        path.name
        for path in LAUNCH.glob("*.py")
        if "parse_args(PROGRAM" in path.read_text(encoding="utf-8") or path.name == "local.py"
    }

    assert {name.removeprefix("python launch/") for name in all_commands()} >= programs - {
        "options.py"
    }
    assert {"python -m actor", "python launch/env_regression.py"} <= all_commands().keys()
    assert all_commands().keys() >= set(QUICK_COMMANDS)
    assert not {"python launch/ranks.py", "python launch/reaper.py"} & all_commands().keys()


def test_helps_are_compared_with_the_interpreter_alone_beside_which_torch_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(startup, "_run_quietly", asked.append)

    bench = startup.bench_help({"python launch/keys.py": ["launch/keys.py"]})
    for contender in bench.contenders.values():
        contender.work()

    assert dict(zip(bench.contenders, asked, strict=True)) == {
        "python -c pass": ["-c", "pass"],
        "python -c 'import torch'": ["-c", "import torch"],
        "python launch/keys.py --help": ["launch/keys.py", "--help"],
    }


def test_starts_are_those_of_the_core_that_the_launcher_takes_and_of_the_native_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("actor.env.core_choice.why_no_native_core", lambda: "")

    assert startup.choose_cores(Effort()) == ("nes_py", "native")
    assert startup.choose_cores(Effort(quick=True)) == ("nes_py",)
    assert startup.choose_cores(Effort(core="native")) == ("native",)
    monkeypatch.setattr("actor.env.core_choice.why_no_native_core", lambda: "no compiler")
    assert startup.choose_cores(Effort()) == ("nes_py",)


def test_rows_of_starts_name_the_core(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start(_plan: StartPlan, core: str) -> Start:
        started.append(core)
        cost = ActorCost(cpu_s=1.0, rss_bytes=1)
        return Start(stored_s=1.0, playing_s=2.0, actors=(cost, cost))

    monkeypatch.setattr(startup, "_start_once", start)

    rows = start_rows(StartPlan(cores=("nes_py", "native"), rounds=2))

    assert started == ["nes_py", "native"] * 2
    assert [row.contender.partition(":")[0] for row in rows] == ["nes_py"] * 4 + ["native"] * 4
