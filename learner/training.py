"""One batch through the learner: taken, trained on, its priorities sent back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

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


def _nothing() -> None:
    """What a host without company has to do meanwhile."""


class Training:
    """Of a learner that is one process.

    Where it may, the priorities of an update are sent while the next one is computed, and what has
    come is heard then: by the second thread, which would be idle, or while a GPU is busy.
    """

    def __init__(
        self,
        learner: Learner,
        source: BatchFeed,
        *,
        uses: int,
        tell: Callable[[UpdateResult], None] = lambda _: None,
        works_meanwhile: bool = False,
    ) -> None:
        """`uses` updates are made with each batch; `tell` hears of each update.

        One CPU thread alone gains nothing by doing other work later, so it does not.
        """
        self.learner = learner
        self.source = source
        self._uses = uses
        self._tell = tell
        has_company = learner.looks_ahead or learner.device.type != "cpu"
        self._works_meanwhile = works_meanwhile and has_company
        self._trained: tuple[ReadyBatch, UpdateResult] | None = None
        """The last batch, until its priorities are sent and its memory is given back."""

    def turn(
        self,
        steer: Callable[[], Steering],
        *,
        stops: bool,
        meanwhile: Callable[[], None] = _nothing,
    ) -> bool:
        """Train on one batch if there is one; `steer` is asked when the batch is here.

        `meanwhile` is called before there is a wait for the batch, or during the update, perhaps by
        another thread; never while this one is at anything but the update.
        """
        del stops
        ready = self.take(meanwhile)
        if ready is None:
            return False
        self.steer(steer())
        self.train(ready, meanwhile)
        return True

    def may_end(self, *, wants_to: bool) -> bool:
        return wants_to

    def leave(self) -> None:
        """There is nobody to tell."""

    def part(self) -> None:
        """There is nobody to wait for."""

    def take(self, meanwhile: Callable[[], None] = _nothing) -> ReadyBatch | None:
        """The next batch; if it is not here, all else is done before a moment's wait for it."""
        if self._works_meanwhile and (ready := self._at_hand()) is not None:
            return ready
        self.catch_up(meanwhile)
        with self.learner.timer.phase("wait"):
            return self.source.next(WAIT_MS)

    def catch_up(self, meanwhile: Callable[[], None]) -> None:
        """What an update would be used for."""
        self.settle()
        meanwhile()

    def settle(self) -> None:
        """Nothing of the last batch is left to do."""
        if self._trained is None:
            return
        (ready, result), self._trained = self._trained, None
        with self.learner.timer.phase("priorities"):
            if result.finite:
                self.source.send_priorities(ready, result.priorities)
            self.source.release(ready)

    def steer(self, steering: Steering) -> None:
        self.learner.set_learning_rate(steering.learning_rate)
        self.source.beta = steering.beta

    def train(self, ready: ReadyBatch, meanwhile: Callable[[], None] = _nothing) -> None:
        """Raises `UpdatesNotFinite` when it has not been possible for too long."""
        timer = self.learner.timer
        with timer.phase("copy"):
            batch = _on_device(ready.batch, self.learner.device)
        for use in range(self._uses):
            is_last = use == self._uses - 1
            work = partial(self._work, meanwhile, is_last=is_last)
            result = self.learner.update(batch, work if self._works_meanwhile else _nothing)
            self._tell(result)
            self._check_finite()
        self._trained = (ready, result)
        if not self._works_meanwhile:
            self.settle()

    def _at_hand(self) -> ReadyBatch | None:
        # Shards are joined then.
        with self.learner.timer.phase("wait"):
            return self.source.at_hand()

    def _work(self, meanwhile: Callable[[], None], *, is_last: bool) -> Batch | None:
        """Besides an update; what comes next, if it is here."""
        self.catch_up(meanwhile)
        with self.learner.timer.phase("wait"):
            self.source.listen()
            return self.source.peek() if is_last else None

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
