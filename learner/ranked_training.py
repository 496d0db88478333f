"""Batches through a learner of several ranks: they train when all have one, and end together.

A round is what all ranks do at the same time: each says whether it has its part of a batch, and
what all heard decides what all do. A rank that waits for its part waits a moment only and says so
in the next round, so nobody is left alone in an update.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from common.errors import RanksLost
from learner.ready_batch import ReadyBatch
from learner.rounds import Agreement, Word, agree, rescale
from learner.training import Steering, Training
from learner.update import Averaging

log = logging.getLogger(__name__)


class Voices(Averaging, Protocol):
    """What `learner.team.Team` offers."""

    def hear(self, mine: Sequence[float]) -> list[list[float]]: ...


class RankedTraining:
    """What `Training` is to one process."""

    def __init__(self, alone: Training, team: Voices) -> None:
        self._alone = alone
        self._team = team
        self._learner = alone.learner
        self._learner.ranks = team
        self._held: ReadyBatch | None = None
        """A part whose batch is not whole yet."""
        self._has_ended = False

    def turn(
        self,
        steer: Callable[[], Steering],
        *,
        stops: bool,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> bool:
        """One round; `steer` counts on rank 0, and whoever `stops` ends all."""
        if self._held is None:
            self._held = self._alone.take(meanwhile)
        else:
            self._alone.catch_up(meanwhile)
        agreement = self._agree(steer(), stops=stops)
        self._has_ended = agreement.ends
        if not agreement.trains or self._held is None:
            return False
        ready, self._held = self._held, None
        self._alone.steer(Steering(learning_rate=agreement.learning_rate, beta=agreement.beta))
        self._alone.train(_as_part(ready, agreement.least_priority), meanwhile)
        return True

    def may_end(self, *, wants_to: bool) -> bool:
        """Who wants to says so in the next round."""
        del wants_to
        return self._has_ended

    def settle(self) -> None:
        self._alone.settle()

    def leave(self) -> None:
        """Let the others know that this rank was told to end; they end with it."""
        if self._has_ended:
            return
        self._has_ended = True
        try:
            self._agree(Steering(learning_rate=0.0, beta=0.0), stops=True)
        except RanksLost as error:
            log.warning("the other ranks are gone", extra={"error": str(error)})

    def part(self) -> None:
        """Wait until all have saved what they must: who ends earlier would end the others."""
        try:
            self._team.hear([0.0])
        except RanksLost as error:
            log.warning("the other ranks are gone", extra={"error": str(error)})

    def _agree(self, steering: Steering, *, stops: bool) -> Agreement:
        held = self._held
        word = Word(
            has_batch=held is not None,
            stops=stops,
            updates=self._learner.updates,
            least_priority=0.0 if held is None else held.min_priority,
            learning_rate=steering.learning_rate,
            beta=steering.beta,
        )
        with self._learner.timer.phase("ranks"):
            heard = self._team.hear(word.to_numbers())
        return agree([Word.from_numbers(numbers) for numbers in heard])


def _as_part(ready: ReadyBatch, least_priority: float) -> ReadyBatch:
    """With the weights that its items have in the whole batch."""
    weights = rescale(ready.batch.weights, ready.min_priority, least_priority, ready.beta)
    return replace(ready, batch=replace(ready.batch, weights=weights))
