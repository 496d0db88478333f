"""The lines of metrics.jsonl as curves for TensorBoard, written beside the training."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from common.extras import install_command
from common.messages import Scalar

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

log = logging.getLogger(__name__)

Line = Mapping[str, Scalar]
STARTED = "meta/started"
GROUPS = ("adaptive", "env", "gpu", "replay")
"""First words of metric names that have a section of their own."""
MAX_WAITING_LINES = 64
MAX_WAITING_VALUES = 1_000
FLUSH_INTERVAL_S = 10
CLOSE_DEADLINE_S = 2.0


class ScalarBoard:
    """Takes lines and never waits; a thread writes them.

    What goes wrong is one warning: TensorBoard is for looking, and training goes on without it.
    """

    def __init__(self, folder: Path, *, agent_steps: int = 0) -> None:
        self._folder = folder
        self._agent_steps = agent_steps
        self._lines: queue.Queue[Line | None] = queue.Queue(MAX_WAITING_LINES)
        self._thread = threading.Thread(target=self._run, name="tensorboard", daemon=True)
        self._thread.start()

    def write(self, line: Line) -> None:
        """A disk that is too slow for it loses lines of the curves; metrics.jsonl has them."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(line)

    def close(self) -> None:
        """Give what was taken a moment to be written."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(CLOSE_DEADLINE_S)

    def _run(self) -> None:
        try:
            # Here, because it takes a second or two, and most runs do not ask for it.
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415

            # What an earlier start wrote beyond our first step is hidden: it was given up.
            with SummaryWriter(
                str(self._folder),
                purge_step=self._agent_steps,
                max_queue=MAX_WAITING_VALUES,
                flush_secs=FLUSH_INTERVAL_S,
            ) as writer:
                self._write_all(writer)
        except ImportError as error:
            extra = {"error": str(error), "command": install_command("tensorboard")}
            log.warning("TensorBoard is not written: its package is missing", extra=extra)
        except Exception as error:  # of the disk, or whatever a version of the package raises
            words = f"{type(error).__name__}: {error}"[:300]
            extra = {"folder": str(self._folder), "error": words}
            log.warning("TensorBoard is not written", extra=extra)

    def _write_all(self, writer: SummaryWriter) -> None:
        writer.add_scalar(STARTED, 1.0, self._agent_steps)
        writer.flush()
        log.info("TensorBoard", extra={"folder": self._folder})
        while (line := self._lines.get()) is not None:
            for tag, value in scalars_of(line).items():
                writer.add_scalar(tag, value, line["global_step"], line["time"])


def scalars_of(line: Line) -> dict[str, float]:
    """What can be drawn of a line, by section and name."""
    return {
        f"{_section(name)}/{name}": float(value)
        for name, value in line.items()
        if isinstance(value, int | float) and name not in ("time", "global_step")
    }


def _section(name: str) -> str:
    if "_share_" in name:
        return "time"
    first = name.partition("_")[0]
    return first if first in GROUPS else "train"
