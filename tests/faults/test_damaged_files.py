"""Row 7: a byte is flipped, a file is cut; rows 19 and 20 as far as they need no learner."""

from __future__ import annotations

import itertools
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import save

from common.component import run_component
from common.errors import ExitCode
from common.jsonl import ROTATE_BYTES, JsonlWriter, line_problem, read_jsonl
from common.lifecycle import StopFlag, run_program
from common.resume import find_resume
from tests.checkpoint_factory import damage, seal_checkpoint, write_small_checkpoint
from tests.faults.conftest import Measured
from tests.faults.writer_process import can_trace
from tests.processes import ROOT, run

FLIP_EVERY_BYTES = 1000
TRUNCATIONS = 50
LINE_KILLS = 40
DEADLINE_S = 60.0
WRITE_LINES = """
import sys
from pathlib import Path
from common.jsonl import JsonlWriter
writer = JsonlWriter(Path(sys.argv[1]))
for number in range(int(sys.argv[2])):
    writer.write({"number": number, "text": "x" * (number % 900)})
"""


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """Two checkpoints; the newer one has files of many kilobytes."""
    write_small_checkpoint(tmp_path / "checkpoints", 1)
    newest = write_small_checkpoint(tmp_path / "checkpoints", 2)
    for name in ("network", "target", "optimizer"):
        tensors = {"weight": torch.rand(8_000)}
        (newest / f"{name}.safetensors").write_bytes(save(tensors))
    seal_checkpoint(newest, 2)
    return tmp_path


def damaged_contents(content: bytes) -> Iterator[bytes]:
    for offset in range(0, len(content), FLIP_EVERY_BYTES):
        yield content[:offset] + bytes([content[offset] ^ 0x10]) + content[offset + 1 :]
    for number in range(TRUNCATIONS):
        yield content[: len(content) * number // TRUNCATIONS]


@pytest.mark.fault(7, "flipped or cut checkpoint", "always found, the one before used, one warning")
def test_damage_is_always_found(
    run_dir: Path, caplog: pytest.LogCaptureFixture, measured: Measured
) -> None:
    caplog.set_level(logging.WARNING)
    tried = 0

    for path in sorted((run_dir / "checkpoints" / "00000000002").iterdir()):
        content = path.read_bytes()
        for damaged in damaged_contents(content):
            path.write_bytes(damaged)
            caplog.clear()
            point = find_resume(run_dir)
            assert point is not None
            assert (point.agent_steps, len(point.skipped)) == (1, 1), path
            assert [record.message for record in caplog.records] == ["corrupt checkpoint skipped"]
            tried += 1
        path.write_bytes(content)

    assert find_resume(run_dir).agent_steps == 2  # type: ignore[union-attr] # there are two
    measured(f"{tried} of {tried} found")


@pytest.mark.integration
@pytest.mark.fault(7, "no valid checkpoint left", "exit 2, no fresh start")
def test_a_run_without_a_valid_checkpoint_is_refused(tmp_path: Path, measured: Measured) -> None:
    run_dir = tmp_path / "r"
    for steps in (1, 2):
        damage(write_small_checkpoint(run_dir / "checkpoints", steps))

    words = ["--runs-dir", str(tmp_path), "--run", "r", "--device", "cpu", "--game", "corridor"]
    code, output = run("launch/local.py", *words, timeout_s=DEADLINE_S)

    assert code == 2
    assert "expected a valid checkpoint, got 2 corrupt" in output.splitlines()[-1]
    assert not (run_dir / "metrics.jsonl").exists()
    measured(f"exit {code}, both named as corrupt")


@pytest.mark.integration
@pytest.mark.fault(
    20, "process killed while it writes lines", "at most its last line is torn, all others are read"
)
def test_killed_writers_tear_their_last_line_at_most(tmp_path: Path, measured: Measured) -> None:
    path, draw = tmp_path / "lines.jsonl", random.Random(3)

    for _ in range(LINE_KILLS):
        process = start_writer(path, 10**9)
        before = size_of(path)
        began_s = time.monotonic()
        while size_of(path) == before and time.monotonic() - began_s < DEADLINE_S:
            time.sleep(0.001)
        time.sleep(draw.uniform(0.0, 0.003))
        process.kill()
        assert process.wait(timeout=DEADLINE_S) == -signal.SIGKILL

    lines = path.read_bytes().splitlines(keepends=True)
    torn = sum(1 for line in lines if line_problem(line))
    numbers = [int(str(record["number"])) for record in read_jsonl(path)]
    # The kernel may end a write between two pages, so a line may be torn although it is one write.
    assert torn <= LINE_KILLS
    assert len(numbers) == len(lines) - torn
    assert all(after in (before + 1, 0) for before, after in itertools.pairwise(numbers))
    measured(f"{LINE_KILLS} kills, {len(lines)} lines, {torn} torn, all others read")


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def start_writer(path: Path, lines: int, *prefix: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", WRITE_LINES, str(path), str(lines)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.integration
@pytest.mark.skipif(not can_trace(), reason="strace is missing or not permitted")
@pytest.mark.fault(20, "lines and system calls", "one write per line, at most 4 kB")
def test_a_line_is_one_write(tmp_path: Path, measured: Measured) -> None:
    path, log = tmp_path / "lines.jsonl", tmp_path / "log"

    tracer = ["strace", "-y", "-s", "0", "-e", "trace=write", "-o", str(log)]
    assert start_writer(path, 200, *tracer).wait(timeout=DEADLINE_S) == 0

    writes = [line for line in log.read_text().splitlines() if str(path) in line]
    sizes = [int(line.rpartition("= ")[2]) for line in writes]
    assert len(writes) == 200
    assert sum(sizes) == path.stat().st_size
    assert max(sizes) <= 4096
    measured(f"{len(writes)} lines, {len(writes)} writes, at most {max(sizes)} bytes")


@pytest.mark.fault(20, "disk full while lines are written", "one warning, training is not held")
def test_a_full_disk_does_not_hold_who_writes_lines(
    caplog: pytest.LogCaptureFixture, measured: Measured
) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("/dev/full is missing")
    writer = JsonlWriter(full)

    began_s = time.monotonic()
    for number in range(1_000):
        writer.write({"number": number})
    took_s = time.monotonic() - began_s
    writer.close()

    assert [record.message for record in caplog.records] == ["cannot write"]
    assert took_s < DEADLINE_S
    assert ROTATE_BYTES == 64 * 2**20
    measured(f"1,000 lines refused in {took_s:.2f} s, one warning")


class LostDevice:
    """A component whose GPU is gone."""

    is_done = False

    def waits_for(self) -> None:
        return None

    def tick(self) -> bool:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered")

    def finish(self, deadline_s: float) -> None:
        raise AssertionError(f"nothing can be saved within {deadline_s} s")

    def close(self) -> None:
        """There is nothing to release."""


@pytest.mark.fault(19, "GPU lost while training", "the process ends with 75: start it again")
def test_a_lost_gpu_ends_the_process_as_a_temporary_failure(measured: Measured) -> None:
    def body() -> int:
        return run_component(LostDevice(), StopFlag(), finish_deadline_s=1.0)

    code = run_program("learner-0", body)

    assert code == ExitCode.TEMPORARY
    measured(f"exit {code}")
