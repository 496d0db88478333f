"""Train on a node of Slurm through submitit: `python docs/deploy/slurm/submit.py --run far`.

Before the time is up, and when the job is preempted, the run is saved and the job queued again; it
goes on from the newest checkpoint. Needs `pip install submitit`, which keeps the job as a pickle in
its own folder; nothing of the run goes through it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import submitit

REPOSITORY = Path(__file__).resolve().parents[3]
FOLDER = "slurm-jobs"
SAVE_DEADLINE_S = 90.0
GOOD_ENDS = (0, 130, 143)
RESOURCES: dict[str, Any] = {
    "name": "warpzone",
    "timeout_min": 240,
    "cpus_per_task": 8,
    "mem_gb": 16,
    "slurm_signal_delay_s": 120,
    "slurm_max_num_timeout": 1_000,
}


class Training:
    """What submitit calls on the node, and what it asks for another submission."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        self.process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> int:
        command = [sys.executable, "launch/local.py", "--plain", *self.words]
        self.process = subprocess.Popen(command, cwd=REPOSITORY)
        code = self.process.wait()
        if code not in GOOD_ENDS:
            raise RuntimeError(f"the run ended with {code}; its log says why")
        return code

    def checkpoint(self) -> submitit.helpers.DelayedSubmission:
        """In the handler of the signal: the launcher saves and ends, then the job is queued."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.process.pid, signal.SIGTERM)
                await_end(self.process.pid)
        return submitit.helpers.DelayedSubmission(Training(self.words))

    __submitit_checkpoint__ = checkpoint
    """The name that newer versions look for."""


def await_end(pid: int) -> None:
    """Without collecting it: `__call__`, which this interrupts, does that and holds its lock."""
    end_s = time.monotonic() + SAVE_DEADLINE_S
    wanted = os.WEXITED | os.WNOHANG | os.WNOWAIT
    while os.waitid(os.P_PID, pid, wanted) is None and time.monotonic() < end_s:
        time.sleep(0.2)


def submit(words: Sequence[str], cluster: str | None = None) -> submitit.Job[int]:
    """`cluster` is found by submitit: slurm where there is one, else local."""
    executor = submitit.AutoExecutor(folder=FOLDER, cluster=cluster)
    executor.update_parameters(**RESOURCES)
    job: submitit.Job[int] = executor.submit(Training(words))
    return job


if __name__ == "__main__":
    job = submit(sys.argv[1:])
    sys.stdout.write(f"job {job.job_id}; its output: {job.paths.stdout}\n")
