from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from learner.scalar_board import (
    FLUSH_INTERVAL_S,
    MAX_WAITING_LINES,
    STARTED,
    ScalarBoard,
    scalars_of,
)
from tests.waiting import wait_until

pytest.importorskip("tensorboard")

LINE = {
    "time": 1_700_000_000.0,
    "global_step": 640,
    "loss_total": 0.5,
    "replay_size": 12,
    "model_compiled": True,
    "gpu_util_last": None,
    "bottleneck": "learner",
}


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard itself reads in a folder: steps and values by tag."""
    from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415 - slow
        EventAccumulator,
    )

    read = EventAccumulator(str(folder))
    read.Reload()
    return {
        tag: [(event.step, event.value) for event in read.Scalars(tag)]
        for tag in read.Tags()["scalars"]
    }


def event_files(folder: Path) -> list[Path]:
    return list(folder.glob("events.out.tfevents.*"))


def opened(folder: Path, agent_steps: int = 0) -> ScalarBoard:
    """A board whose thread has got as far as its file: the import may take seconds."""
    before = len(event_files(folder))
    board = ScalarBoard(folder, agent_steps=agent_steps)
    wait_until("a file of events", lambda: len(event_files(folder)) > before, 30)
    return board


def test_lines_become_curves_over_the_agent_steps(tmp_path: Path) -> None:
    board = opened(tmp_path, agent_steps=600)
    board.write(LINE)
    board.write({**LINE, "global_step": 1_280, "loss_total": 0.25})
    board.close()

    read = curves(tmp_path)

    assert read["train/loss_total"] == [(640, 0.5), (1_280, 0.25)]
    assert read["replay/replay_size"] == [(640, 12.0), (1_280, 12.0)]
    assert read["train/model_compiled"][0] == (640, 1.0)
    assert read[STARTED] == [(600, 1.0)]
    assert not [tag for tag in read if "gpu" in tag or "bottleneck" in tag]


def test_the_start_is_on_disk_before_any_line(tmp_path: Path) -> None:
    board = opened(tmp_path)

    in_time_s = FLUSH_INTERVAL_S - 2
    wait_until("the start", lambda: curves(tmp_path) == {STARTED: [(0, 1.0)]}, in_time_s)

    board.close()


def test_what_a_run_gave_up_by_going_back_is_hidden(tmp_path: Path) -> None:
    first = opened(tmp_path)
    for step in (100, 200, 300):
        first.write({**LINE, "global_step": step})
    first.close()
    second = opened(tmp_path, agent_steps=150)
    second.write({**LINE, "global_step": 160})
    second.close()

    assert [step for step, _ in curves(tmp_path)["train/loss_total"]] == [100, 160]


def test_a_folder_that_cannot_be_written_is_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "tensorboard"
    place.write_text("a file, where a folder should be")

    board = ScalarBoard(place)
    board.close()
    for _ in range(2 * MAX_WAITING_LINES):
        board.write(LINE)
    board.close()

    (record,) = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert record.message == "TensorBoard is not written"
    assert str(place) in str(vars(record)["folder"])


def test_a_missing_package_is_one_warning_with_what_installs_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)

    board = ScalarBoard(tmp_path)
    board.write(LINE)
    board.close()

    (record,) = caplog.records
    command = "pip install -c constraints.txt -e '.[tensorboard]'"
    assert vars(record)["command"] == command


def test_metrics_are_grouped_by_what_they_are_about() -> None:
    names = ("env_mean_x_pos", "adaptive_lr_scale", "wait_share_actors", "updates", "gpu_util_last")

    tags = scalars_of(dict.fromkeys(names, 1))

    assert list(tags) == [
        "env/env_mean_x_pos",
        "adaptive/adaptive_lr_scale",
        "time/wait_share_actors",
        "train/updates",
        "gpu/gpu_util_last",
    ]
