"""When checkpoints are written, and what happens when they cannot be."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from common.checkpoint_files import JsonObject
from common.errors import MarioError
from learner.checkpoint import checkpoint_of, prune_checkpoints, write_checkpoint
from learner.update import Learner

log = logging.getLogger(__name__)

MAX_FAILURES_IN_A_ROW = 3


class Archive:
    """Writes a checkpoint per interval; a full disk is survived three times in a row."""

    def __init__(
        self,
        folder: Path,
        *,
        interval_s: float,
        keep: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._interval_s = interval_s
        self._keep = keep
        self._clock = clock
        self._last_s = clock()
        self.failures_in_a_row = 0
        self.last_error: str | None = None

    def due(self) -> bool:
        return self._clock() - self._last_s >= self._interval_s

    def save(self, learner: Learner, agent_steps: int, run: JsonObject) -> Path | None:
        """The checkpoint, or None when it could not be written and training goes on."""
        self._last_s = self._clock()
        try:
            path = write_checkpoint(
                self._folder, checkpoint_of(learner, agent_steps=agent_steps, run=run)
            )
            prune_checkpoints(self._folder, keep=self._keep)
        except OSError as error:
            self._note_failure(error)
            return None
        self.failures_in_a_row, self.last_error = 0, None
        log.info("checkpoint written", extra={"path": path})
        return path

    def _note_failure(self, error: OSError) -> None:
        self.failures_in_a_row += 1
        self.last_error = str(error)
        log.error("checkpoint not written", extra={"error": str(error)})
        if self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
            raise MarioError(
                f"{self.failures_in_a_row} checkpoints in a row could not be written to "
                f"{self._folder}: {error}; free some space, then resume"
            ) from error
