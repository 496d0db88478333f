"""The jobs for Slurm, with stand-ins for what only a cluster has."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered
from tests.process_system import START_DEADLINE_S
from tests.processes import ROOT, write_corridor
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

JOBS = ROOT / "docs" / "deploy" / "slurm"
TRAINER = """#!/usr/bin/env bash
trap 'sleep 0.3; echo saved > saved; exit 143' TERM
echo "$@" > words
[ "${2:-}" = "--plain" ] && [ "${3:-}" = "quick" ] && exit 75
while :; do sleep 0.05; done
"""
"""Stands for Python with the launcher: saves for a moment when it is told to end."""


def script(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o700)
    return path


@contextmanager
def job(folder: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    script(folder / "scontrol", '#!/usr/bin/env bash\necho "$@" > requeued\n')
    trainer = script(folder / "trainer", TRAINER)
    process = subprocess.Popen(
        ["bash", str(JOBS / "train.sbatch"), *words],
        cwd=folder,
        env={
            "PATH": f"{folder}:{os.environ['PATH']}",
            "PYTHON": str(trainer),
            "SLURM_JOB_ID": "42",
        },
        process_group=0,
    )
    try:
        yield process
    finally:
        # The trainer, too, if a test failed before it was told to end.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.mark.parametrize(
    ("number", "code", "requeued"), [(signal.SIGUSR1, 0, "requeue 42\n"), (signal.SIGTERM, 143, "")]
)
def test_a_job_whose_time_is_up_is_saved_and_only_then_queued_again(
    tmp_path: Path, number: signal.Signals, code: int, requeued: str
) -> None:
    with job(tmp_path, "--run", "far") as process:
        wait_until("the launcher was started", (tmp_path / "words").exists)

        process.send_signal(number)
        assert process.wait(10) == code

    said = tmp_path / "requeued"
    assert (tmp_path / "saved").exists()
    assert (tmp_path / "words").read_text(encoding="utf-8") == "launch/local.py --plain --run far\n"
    assert (said.read_text(encoding="utf-8") if said.exists() else "") == requeued


def test_a_run_that_ends_by_itself_gives_its_exit_code(tmp_path: Path) -> None:
    with job(tmp_path, "quick") as process:
        assert process.wait(10) == 75

    assert not (tmp_path / "requeued").exists()


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_preempted_job_of_submitit_saves_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("submitit")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    module = runpy.run_path(str(JOBS / "submit.py"))
    runs, corridor = tmp_path / "runs", write_corridor(tmp_path)
    words = ["--preset", str(corridor), "--runs-dir", str(runs), "--run", "far"]
    training = module["Training"](words)
    checkpoints = runs / "far" / "checkpoints"

    def interrupt(*_: object) -> None:
        training.again = training.checkpoint()

    def preempt() -> None:
        wait_until("a checkpoint", lambda: bool(list_numbered(checkpoints)), START_DEADLINE_S)
        main = threading.main_thread().ident or 0
        signal.pthread_kill(main, signal.SIGUSR2)

    previous = signal.signal(signal.SIGUSR2, interrupt)
    preemption = threading.Thread(target=preempt)
    preemption.start()
    try:
        code = training()
    finally:
        preemption.join()
        signal.signal(signal.SIGUSR2, previous)

    assert code == 143
    assert list_numbered(checkpoints)
    again = training.again.function
    assert (again.words, again.process) == (words, None)
