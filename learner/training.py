"""One batch through the learner: taken, trained on, its priorities sent back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from common.batch import Batch
from common.errors import UpdatesNotFinite
from learner.ready_batch import BatchFeed, ReadyBatch
from learner.update import Learner, UpdateResult

WAIT_MS = 50
MAX_SKIPPED_IN_A_ROW = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """What follows the progress of the run."""

    learning_rate: float
    beta: float
    """Of the batches that are asked for from now on."""


class Training:
    """Of a learner that is one process."""

    def __init__(
        self,
        learner: Learner,
        source: BatchFeed,
        *,
        uses: int,
        tell: Callable[[UpdateResult], None] = lambda _: None,
    ) -> None:
        """`uses` updates are made with each batch; `tell` hears of each update."""
        self.learner = learner
        self.source = source
        self._uses = uses
        self._tell = tell

    def turn(self, steer: Callable[[], Steering], *, stops: bool) -> bool:
        """Train on one batch if there is one; `steer` is asked when the batch is here."""
        del stops
        ready = self.wait()
        if ready is None:
            return False
        self.steer(steer())
        self.train(ready)
        return True

    def may_end(self, *, wants_to: bool) -> bool:
        return wants_to

    def leave(self) -> None:
        """There is nobody to tell."""

    def part(self) -> None:
        """There is nobody to wait for."""

    def wait(self) -> ReadyBatch | None:
        with self.learner.timer.phase("wait"):
            return self.source.next(WAIT_MS)

    def steer(self, steering: Steering) -> None:
        self.learner.set_learning_rate(steering.learning_rate)
        self.source.beta = steering.beta

    def train(self, ready: ReadyBatch) -> None:
        """Raises `UpdatesNotFinite` when it has not been possible for too long."""
        timer = self.learner.timer
        with timer.phase("copy"):
            batch = _on_device(ready.batch, self.learner.device)
        for use in range(self._uses):
            is_last = use == self._uses - 1
            result = self.learner.update(batch, self._upcoming() if is_last else None)
            self._tell(result)
            self._check_finite()
        with timer.phase("priorities"):
            if result.finite:
                self.source.send_priorities(ready, result.priorities)
            self.source.release(ready)

    def _upcoming(self) -> Batch | None:
        """What comes next, if it is here and of use."""
        if not self.learner.looks_ahead:
            return None
        with self.learner.timer.phase("wait"):
            return self.source.peek()

    def _check_finite(self) -> None:
        if self.learner.consecutive_skipped_updates >= MAX_SKIPPED_IN_A_ROW:
            raise UpdatesNotFinite(
                f"{MAX_SKIPPED_IN_A_ROW} updates in a row were not finite; the last good state "
                "is saved; resume with a lower --learning-rate"
            )


def _on_device(batch: Batch, device: torch.device) -> Batch:
    """Where the device is the CPU this copies nothing: the slot itself is trained on."""
    if batch.actions.device == device:
        return batch
    moved = {name: getattr(batch, name).to(device) for name in Batch.__slots__}
    return Batch(**moved)
