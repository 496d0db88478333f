"""Rows 5, 6 and 8: the checkpoint writer is killed, and its disk fails, at every call."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered, verify_checkpoint
from common.resume import find_resume
from learner.checkpoint import remove_leftovers
from tests.faults.conftest import Measured
from tests.faults.forked_jobs import NOT_SAVED
from tests.faults.writer_process import Call, WriterProcess, can_trace, write_traced

pytestmark = pytest.mark.integration

RANDOM_KILLS = 100
SUBJECTS = (
    (".tmp-removed-", "pruned"),
    (".tmp-latest-", "latest"),
    ("manifest.json", "manifest"),
    (".safetensors", "file"),
    ("state.json", "file"),
    (".tmp-checkpoint-", "temporary folder"),
)
needs_strace = pytest.mark.skipif(not can_trace(), reason="strace is missing or not permitted")


@pytest.fixture(scope="module")
def writer() -> Iterator[WriterProcess]:
    process = WriterProcess("tests.faults.checkpoint_writer")
    yield process
    process.close()


@pytest.fixture
def run_dir(tmp_path: Path, writer: WriterProcess) -> Path:
    """A run with the checkpoints 1 and 2; the next one to be written prunes the first."""
    writer.begin(tmp_path / "checkpoints", [1, 2])
    assert writer.end()[0] == 0
    return tmp_path


def require_sound(run_dir: Path) -> int:
    """Everything with a number is valid; the agent steps that a resume goes on from."""
    point = find_resume(run_dir)
    assert point is not None
    assert (point.source, point.skipped) == ("numbered", ())
    for path in list_numbered(run_dir / "checkpoints"):
        verify_checkpoint(path)
    return point.agent_steps


def temporaries(run_dir: Path) -> list[str]:
    return [path.name for path in (run_dir / "checkpoints").iterdir() if path.name[0] == "."]


@needs_strace
@pytest.mark.fault(
    5, "learner SIGKILL at any system call", "newest valid checkpoint, never a fresh start"
)
def test_a_kill_at_any_system_call_leaves_a_valid_checkpoint(
    run_dir: Path, writer: WriterProcess, tmp_path: Path, measured: Measured
) -> None:
    _, calls = write_traced(writer, run_dir / "checkpoints", 3, tmp_path / "log")
    counts = Counter(call.name for call in calls)
    kept, steps = Counter[bool](), 3

    for name, number in ((name, n + 1) for name, count in counts.items() for n in range(count)):
        inject = f"{name}:signal=SIGKILL:when={number}"
        code, _ = write_traced(writer, run_dir / "checkpoints", steps + 1, tmp_path / "log", inject)
        assert code == -signal.SIGKILL, inject
        found = require_sound(run_dir)
        assert found in (steps, steps + 1), inject
        kept[found > steps] += 1
        steps = found

    remove_leftovers(run_dir / "checkpoints")
    assert temporaries(run_dir) == []
    measured(f"{kept.total()} kills: {kept[False]} kept the old one, {kept[True]} the new one")


@pytest.mark.fault(
    5, "learner SIGKILL at any call of Python", "newest valid checkpoint, never a fresh start"
)
def test_a_kill_at_any_call_leaves_a_valid_checkpoint(
    run_dir: Path, writer: WriterProcess, measured: Measured
) -> None:
    writer.begin(run_dir / "checkpoints", [3], kill_at=0)
    total = int(writer.end()[1][0].split()[1])
    steps = 3

    for number in range(1, total + 1):
        writer.begin(run_dir / "checkpoints", [steps + 1], kill_at=number)
        assert writer.end()[0] == -signal.SIGKILL
        found = require_sound(run_dir)
        assert found in (steps, steps + 1)
        steps = found

    measured(f"{total} kills, all resumed from a valid one")


@pytest.mark.fault(5, "learner SIGKILL at 100 random moments", "nothing that was saved is lost")
def test_random_kills_never_lose_what_was_saved(
    run_dir: Path, writer: WriterProcess, measured: Measured
) -> None:
    draw, steps, lost = random.Random(5), 2, 0
    began_s = time.monotonic()
    writer.begin(run_dir / "checkpoints", [steps := steps + 1])
    assert writer.end()[0] == 0
    longest_s = 2 * (time.monotonic() - began_s)

    for _ in range(RANDOM_KILLS):
        pid = writer.begin(run_dir / "checkpoints", range(steps + 1, steps + 1_000))
        time.sleep(draw.uniform(0.0, longest_s))
        os.kill(pid, signal.SIGKILL)
        code, said = writer.end()
        assert code == -signal.SIGKILL
        saved = max((int(line.split()[1]) for line in said), default=steps)
        found = require_sound(run_dir)
        lost += max(saved - found, 0)
        steps = found

    assert lost == 0
    left = len(remove_leftovers(run_dir / "checkpoints"))
    measured(f"{RANDOM_KILLS} kills over {steps} checkpoints, {left} leftovers, none lost")


@needs_strace
@pytest.mark.fault(
    6, "power loss", "files are synced before the name, the name before anything is pruned"
)
def test_the_order_of_system_calls(
    run_dir: Path, writer: WriterProcess, tmp_path: Path, measured: Measured
) -> None:
    code, calls = write_traced(writer, run_dir / "checkpoints", 3, tmp_path / "log")

    assert code == 0
    phases = [phase for call in calls if (phase := phase_of(call, run_dir / "checkpoints"))]
    files = ["open file", "write file", "sync file"] * 4
    manifest = ["open manifest", "write manifest", "sync manifest"]
    latest = ["open latest", "write latest", "sync latest", "rename latest", "sync folder"]
    assert phases == [
        *files,
        *manifest,
        "sync temporary folder",
        "rename temporary folder",
        "sync folder",
        *latest,
        "rename pruned",
        *["remove pruned"] * 6,
    ]
    measured(f"{len(phases)} calls in the promised order")


def phase_of(call: Call, folder: Path) -> str:
    """The call in words, or empty where it changes nothing."""
    verbs = {"openat": "open", "fsync": "sync", "unlinkat": "remove", "rmdir": "remove"}
    only_reads = call.name == "openat" and "O_CREAT" not in call.text
    if str(folder) not in call.text or call.name == "mkdir" or only_reads:
        return ""
    subject = next((name for part, name in SUBJECTS if part in call.text), "folder")
    return f"{verbs.get(call.name, call.name)} {subject}"


@needs_strace
@pytest.mark.fault(8, "EIO while saving", "old checkpoint intact, no temporary left, no retry")
def test_a_disk_error_at_any_system_call_leaves_the_old_checkpoint(
    run_dir: Path, writer: WriterProcess, tmp_path: Path, measured: Measured
) -> None:
    _, calls = write_traced(writer, run_dir / "checkpoints", 3, tmp_path / "log")
    counts = Counter(call.name for call in calls if call.name in ("write", "fsync", "rename"))
    steps, refused = 3, 0

    for name, count in counts.items():
        for number in range(1, count + 1):
            inject = f"{name}:error=EIO:when={number}"
            code, seen = write_traced(
                writer, run_dir / "checkpoints", steps + 1, tmp_path / "log", inject
            )
            assert code in (0, NOT_SAVED), inject
            refused += code == NOT_SAVED
            assert temporaries(run_dir) == [], inject
            found = require_sound(run_dir)
            assert found == steps + 1 or (found == steps and code == NOT_SAVED), inject
            require_no_retry(seen)
            steps = found

    measured(f"{counts.total()} errors: {refused} refused, the rest after the checkpoint stood")


def require_no_retry(calls: list[Call]) -> None:
    """After a failed fsync nobody knows what the page cache holds: the file is given up."""
    synced = [call.text.partition(")")[0] for call in calls if call.name == "fsync"]
    failed = [call.text.partition(")")[0] for call in calls if "EIO" in call.text]
    assert [name for name in failed if ".tmp-" in name and synced.count(name) > 1] == []
