"""When checkpoints are written, and what happens when they cannot be."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from common.checkpoint_files import JsonObject, checkpoint_name
from common.errors import MarioError
from learner.checkpoint import checkpoint_of, prune_checkpoints, write_checkpoint
from learner.update import Learner

log = logging.getLogger(__name__)

MAX_FAILURES_IN_A_ROW = 3


class Archive:
    """Writes a checkpoint per interval; a full disk is survived three times in a row.

    There is an interval of time, for safety, and one of agent steps, for evaluation.
    """

    def __init__(  # noqa: PLR0913 - two intervals, and where they begin
        self,
        folder: Path,
        *,
        interval_s: float,
        interval_agent_steps: int,
        keep: int,
        agent_steps: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._interval_s = interval_s
        self._interval_agent_steps = interval_agent_steps
        self._last_agent_steps = agent_steps
        self._keep = keep
        self._clock = clock
        self._last_s = clock()
        self.failures_in_a_row = 0
        self.last_error: str | None = None

    def due(self, agent_steps: int) -> bool:
        interval = self._interval_agent_steps
        is_milestone = agent_steps // interval > self._last_agent_steps // interval
        return is_milestone or self._clock() - self._last_s >= self._interval_s

    def has(self, agent_steps: int) -> bool:
        """Whether a checkpoint stands there already: it is kept, and so is the replay with it."""
        return (self._folder / checkpoint_name(agent_steps)).exists()

    def save(self, learner: Learner, agent_steps: int, run: JsonObject) -> Path | None:
        """The checkpoint, or None when it could not be written and training goes on."""
        self._last_s = self._clock()
        self._last_agent_steps = agent_steps
        try:
            path = write_checkpoint(
                self._folder, checkpoint_of(learner, agent_steps=agent_steps, run=run)
            )
            prune_checkpoints(self._folder, keep=self._keep)
        except OSError as error:
            self._note_failure(error)
            return None
        self.failures_in_a_row, self.last_error = 0, None
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
