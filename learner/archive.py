"""When checkpoints are written, beside the training, and what happens when they cannot be."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from common.checkpoint_files import JsonObject, checkpoint_name
from common.errors import MarioError
from learner.checkpoint import Checkpoint, checkpoint_of, prune_checkpoints, write_checkpoint
from learner.update import Learner

log = logging.getLogger(__name__)

MAX_FAILURES_IN_A_ROW = 3
CLOSE_DEADLINE_S = 5.0


class Archive:
    """Writes a checkpoint per interval; a full disk is survived three times in a row.

    There is an interval of time, for safety, and one of agent steps, for evaluation. A disk that
    is slower than the interval makes checkpoints rarer, never the training slower.
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
        self._thread: threading.Thread | None = None
        self._outcome: Path | Exception | None = None
        """Of a write that has ended and that nobody has asked about."""
        self.failures_in_a_row = 0
        self.last_error: str | None = None

    def due(self, agent_steps: int, *, is_wanted: bool = False) -> bool:
        """Not while one is being written: it is due as soon as the disk is free again."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self._settle()
        interval = self._interval_agent_steps
        is_milestone = agent_steps // interval > self._last_agent_steps // interval
        return is_wanted or is_milestone or self._clock() - self._last_s >= self._interval_s

    def has(self, agent_steps: int) -> bool:
        """Whether a checkpoint stands there already: it is kept, and so is the replay with it."""
        self._await_writer()
        return (self._folder / checkpoint_name(agent_steps)).exists()

    def begin(self, learner: Learner, agent_steps: int, run: JsonObject) -> None:
        """Copy the state; the copy is written beside the training. `due` tells of failures."""
        self._await_writer()
        checkpoint = self._copy(learner, agent_steps, run)
        self._thread = threading.Thread(
            target=self._write, args=(checkpoint,), name="checkpoint", daemon=True
        )
        self._thread.start()

    def save(self, learner: Learner, agent_steps: int, run: JsonObject) -> Path | None:
        """The checkpoint, written, or None when it could not be and training goes on."""
        self._await_writer()
        self._write(self._copy(learner, agent_steps, run))
        return self._settle()

    def close(self) -> None:
        """Let the checkpoint that is being written come to its end."""
        if self._thread is not None:
            self._thread.join(CLOSE_DEADLINE_S)

    def _copy(self, learner: Learner, agent_steps: int, run: JsonObject) -> Checkpoint:
        self._last_s = self._clock()
        self._last_agent_steps = agent_steps
        return checkpoint_of(learner, agent_steps=agent_steps, run=run)

    def _write(self, checkpoint: Checkpoint) -> None:
        try:
            self._outcome = write_checkpoint(self._folder, checkpoint)
            prune_checkpoints(self._folder, keep=self._keep)
        except Exception as error:
            # For the thread that trains, which decides: an error raised here would end in stderr.
            self._outcome = error

    def _await_writer(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._settle()

    def _settle(self) -> Path | None:
        """Take note of how the last write went; where it went to."""
        outcome, self._outcome, self._thread = self._outcome, None, None
        if isinstance(outcome, OSError):
            self._note_failure(outcome)
            return None
        if isinstance(outcome, Exception):
            raise outcome
        if outcome is not None:
            self.failures_in_a_row, self.last_error = 0, None
        return outcome

    def _note_failure(self, error: OSError) -> None:
        self.failures_in_a_row += 1
        self.last_error = str(error)
        log.error("checkpoint not written", extra={"error": str(error)})
        if self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW:
            raise MarioError(
                f"{self.failures_in_a_row} checkpoints in a row could not be written to "
                f"{self._folder}: {error}; free some space, then resume"
            ) from error
