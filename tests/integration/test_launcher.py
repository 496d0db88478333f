"""The launcher as a user meets it: wrong input, an early Ctrl-C, a fresh start.

Signals, a second launcher and a lost launcher are in tests/faults/.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered
from common.jsonl import last_record
from tests.processes import end, processes_mentioning, run, start, write_corridor
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow]

LOCAL = "launch/local.py"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--actors", "0"], "--actors must be between 1 and 10000, got 0"),
        (["--actors", "abc"], "abc"),
        (["--batch-sise", "3"], "--batch-size"),
        (["--preset", "desktop"], "laptop, smoke, stable, workstation"),
        (["--run", "../../etc"], "run name"),
        (["--device", "gpu"], "--device must be auto, cpu, cuda or cuda:N"),
        (["--stage", "9-9"], "--stage must be 1-1 to 8-4"),
        (["--gamma", "1.0"], "--gamma must be between 0 and 1"),
        (["--fresh", "--resume", "latest"], "contradict"),
        (["--device", "cpu", "--resume"], "no checkpoint below"),
        (["--device", "cpu", "--resume", "missing/run"], "missing/run"),
        (["--capacity", "100"], "--capacity must be at least --learning-starts"),
    ],
)
def test_wrong_input_gets_one_clear_error(words: list[str], expected: str, tmp_path: Path) -> None:
    code, output = run(LOCAL, "--runs-dir", str(tmp_path), *words)

    assert code == 2
    assert expected in output
    assert "Traceback" not in output


def test_auto_without_cuda_is_refused_with_the_command_that_works(tmp_path: Path) -> None:
    code, output = run(
        LOCAL, "--runs-dir", str(tmp_path), "--actors", "3", env={"CUDA_VISIBLE_DEVICES": ""}
    )

    assert code == 2
    assert "--actors 3 --device cpu" in output


def test_a_folder_that_cannot_be_written_is_named() -> None:
    code, output = run(LOCAL, "--runs-dir", "/proc/nowhere", "--device", "cpu")

    assert code == 2
    assert "/proc/nowhere/default" in output


def test_settings_that_an_actor_refuses_end_the_run_with_its_words(tmp_path: Path) -> None:
    preset = write_corridor(tmp_path)

    code, output = run(
        LOCAL, "--preset", str(preset), "--size", "12", "--runs-dir", str(tmp_path), timeout_s=90
    )

    assert code == 2
    assert "the corridor needs size >= 16, got 12" in output


@pytest.fixture
def launcher(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = start(
        LOCAL, "--preset", str(write_corridor(tmp_path)), "--runs-dir", str(tmp_path), "--run", "r"
    )
    metrics = tmp_path / "r" / "metrics.jsonl"

    def trains() -> bool:
        assert process.poll() is None, process.communicate()[0]
        updates = (last_record(metrics) or {}).get("updates")
        return isinstance(updates, int) and updates > 0

    try:
        wait_until("first update", trains, 60)
        yield process
    finally:
        end(process)
        for child in processes_mentioning(str(tmp_path)):
            child.kill()


def test_fresh_moves_the_earlier_run_aside(launcher: subprocess.Popen[str], tmp_path: Path) -> None:
    launcher.terminate()
    launcher.communicate(timeout=20)

    code, output = run(
        LOCAL,
        "--preset",
        str(tmp_path / "corridor.toml"),
        "--runs-dir",
        str(tmp_path),
        "--run",
        "r",
        "--fresh",
        "--max-agent-steps",
        "200",
        timeout_s=60,
    )

    assert code == 0, output
    kept = list(tmp_path.glob("r.before-*"))
    assert len(kept) == 1
    assert (kept[0] / "checkpoints").is_dir()
    assert "going on from" not in output


@pytest.mark.parametrize("delay_s", [0.5, 1.5, 4.0])
def test_ctrl_c_while_starting_leaves_no_traceback(delay_s: float, tmp_path: Path) -> None:
    process = start(
        LOCAL, "--preset", str(write_corridor(tmp_path)), "--runs-dir", str(tmp_path), "--run", "r"
    )
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    end(process)

    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert processes_mentioning(str(tmp_path)) == []


def test_a_skipped_checkpoint_is_shown(launcher: subprocess.Popen[str], tmp_path: Path) -> None:
    launcher.terminate()
    launcher.communicate(timeout=20)
    newest = list_numbered(tmp_path / "r" / "checkpoints")[0]
    (newest / "network.safetensors").write_bytes(b"damage")

    code, output = run(
        LOCAL, "--runs-dir", str(tmp_path), "--run", "r", "--max-minutes", "0.05", timeout_s=60
    )

    assert code == 0, output
    assert "WARNING: skipped" in output
    assert str(newest.name) in output.replace("\n", "")
