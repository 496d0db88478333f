"""The ranks of one learner on this machine: torchrun's engine with our signals and exit codes.

`launch/local.py` starts it in place of a learner: `python -m launch.ranks 2 --config ...` runs that
many learners with these flags. When one ends, all do, and the launcher starts all of them again.
Ranks on several machines are for torchrun itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

import psutil
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from common.errors import ExitCode
from common.ids import peer_id
from common.lifecycle import PARENT_PID_VARIABLE, StopFlag
from common.pulse import PULSE_VARIABLE
from common.ranks import STORE_VARIABLE
from launch.restart import SIGNAL_BASE

LOOPBACK = "lo" if sys.platform == "linux" else "lo0"
NOBODY_LISTENS = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""Torch's own store would listen on all interfaces, for anybody; a private file needs none."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(argv: Sequence[str]) -> int:
    ranks, *flags = argv
    asked = _pass_signals_on()
    # The ranks give no pulse: they would write to whatever file has that number there.
    os.environ.pop(PULSE_VARIABLE, None)
    with tempfile.TemporaryDirectory(prefix="warpzone-ranks-") as folder:
        os.environ.update(rank_environment(Path(folder), os.environ))
        codes = _run(int(ranks), flags, Path(folder))
    code = exit_code_of(codes, was_asked=bool(asked))
    if code not in (ExitCode.DONE, ExitCode.INTERRUPTED, ExitCode.TERMINATED):
        told = ", ".join(f"rank {rank}: {codes[rank]}" for rank in sorted(codes))
        sys.stderr.write(f"{peer_id('learner', 0)}: ranks ended with exit codes ({told})\n")
    return code


def rank_environment(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """What the ranks need to find each other, and nobody else to find them."""
    return {
        STORE_VARIABLE: str(folder / "store"),
        NOBODY_LISTENS: "1",
        # They stop when this process is gone.
        PARENT_PID_VARIABLE: str(os.getpid()),
        "GLOO_SOCKET_IFNAME": given.get("GLOO_SOCKET_IFNAME", LOOPBACK),
        "NCCL_SOCKET_IFNAME": given.get("NCCL_SOCKET_IFNAME", LOOPBACK),
    }


def exit_code_of(codes: Mapping[int, int], *, was_asked: bool) -> int:
    """One exit code for those of the ranks that were not 0, a signal as 128 + its number.

    Ranks that end because another one did say so with 75 or 143: its own code counts more. Where
    all were asked to end, rank 0 says whether the last checkpoint stands.
    """
    ours = {rank: code if code >= 0 else SIGNAL_BASE - code for rank, code in codes.items()}
    if ExitCode.CONFIGURATION in ours.values():
        return int(ExitCode.CONFIGURATION)
    if was_asked:
        return ours.get(0, int(ExitCode.DONE))
    causes = [c for c in ours.values() if c not in (ExitCode.TEMPORARY, ExitCode.TERMINATED)]
    return next(iter((*causes, *sorted(ours.values()))), int(ExitCode.DONE))


def _run(ranks: int, flags: Sequence[str], folder: Path) -> dict[int, int]:
    """The exit codes of the ranks that failed, as Python tells them."""
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id="learner",
        role="learner",
        rdzv_backend="c10d",
        rdzv_endpoint=str(folder / "rendezvous"),
        rdzv_configs={"store_type": "file"},
        # A learner that fails again and again is the launcher's business, which waits longer then.
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder / "logs")),
        # Any other would end the ranks without a word on whether rank 0 has saved.
        signals_to_handle="SIGQUIT",
    )
    words = ("-m", "learner", *flags)
    try:
        elastic_launch(config, sys.executable)(*words)
    except ChildFailedError as error:
        return {rank: failure.exitcode for rank, failure in error.failures.items()}
    return {}


def _pass_signals_on() -> list[int]:
    """The signals that came, all of which the ranks hear of as a SIGTERM."""
    asked: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        asked.append(number)
        ranks = psutil.Process().children()
        for rank in ranks:
            with contextlib.suppress(psutil.Error):
                rank.send_signal(signal.SIGTERM)
        if not ranks:
            sys.exit(SIGNAL_BASE + number)

    stop = StopFlag.on_signals()
    for number in STOP_SIGNALS:
        signal.signal(number, pass_on)
    stop.end_with_parent(signal.SIGTERM)
    return asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
