"""Ranks of a learner in threads of one process, and sources that a test fills by hand."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from common.batch import Batch
from common.errors import RanksLost
from common.messages import Scalar
from common.ranks import Place
from learner.ranked_training import RankedTraining
from learner.ready_batch import ReadyBatch
from learner.rounds import Word
from learner.team import Team
from learner.training import Steering, Training
from learner.update import UpdateSettings
from tests.learner_factory import random_batch, tiny_learner

DEADLINE_S = 20.0
STEERING = Steering(learning_rate=1e-3, beta=0.4)


@dataclass
class HandFedSource:
    """Implements `learner.ready_batch.BatchFeed`; never waits."""

    beta: float = 0.0
    batches: deque[ReadyBatch] = field(default_factory=deque)
    told: list[Tensor] = field(default_factory=list)
    """Priorities that were sent back."""
    released: int = 0
    stats: dict[str, Scalar] = field(default_factory=dict)
    unsent_priorities: int = 0

    def feed(self, batch: Batch, priorities: Tensor, beta: float) -> None:
        """A part whose weights are relative to its own least priority, as servers send it."""
        least = float(priorities.min())
        weights = ((least / priorities) ** beta).to(torch.float32)
        batch.weights.copy_(weights)
        self.batches.append(ReadyBatch(batch, 0, 1, least, beta))

    def next(self, timeout_ms: int) -> ReadyBatch | None:
        del timeout_ms
        return self.batches.popleft() if self.batches else None

    def at_hand(self) -> ReadyBatch | None:
        return self.next(0)

    def listen(self) -> None:
        """All has come that is fed."""

    def peek(self) -> Batch | None:
        return self.batches[0].batch if self.batches else None

    def release(self, ready: ReadyBatch) -> None:
        del ready
        self.released += 1

    def send_priorities(self, ready: ReadyBatch, errors: Tensor) -> None:
        del ready
        self.told.append(errors)

    def set_samples_per_insert(self, ratio: float) -> bool:
        return ratio > 0

    def request_cut(self, agent_steps: int) -> None:
        """Nothing is saved."""

    def ask_stats(self) -> None:
        """There are none."""

    def bad_answers(self) -> dict[str, Scalar]:
        return {}

    def waits_for(self) -> str:
        return "the test"

    def close(self) -> None:
        """Nothing is open."""


class ThreadVoice:
    """One rank's side of a `Meeting`; implements `learner.ranked_training.Voices`."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self._meeting = meeting
        self._rank = rank

    def hear(self, mine: Sequence[float]) -> list[list[float]]:
        said = self._meeting.exchange(self._rank, torch.tensor(mine, dtype=torch.float64))
        return [words.tolist() for words in said]

    def average(self, tensors: Sequence[Tensor]) -> None:
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        mean = torch.stack(self._meeting.exchange(self._rank, flat)).mean(0)
        parts = torch.split(mean, [tensor.numel() for tensor in tensors])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.copy_(part.view_as(tensor))


class Meeting:
    """Where the threads exchange tensors; a rank that left breaks it for all."""

    def __init__(self, ranks: int) -> None:
        self._said: list[Tensor] = [torch.empty(0)] * ranks
        self._barrier = threading.Barrier(ranks, timeout=DEADLINE_S)

    def exchange(self, rank: int, mine: Tensor) -> list[Tensor]:
        self._said[rank] = mine
        try:
            self._barrier.wait()
            said = list(self._said)
            self._barrier.wait()
        except threading.BrokenBarrierError as error:
            raise RanksLost("a thread is gone") from error
        return said

    def lose(self) -> None:
        self._barrier.abort()


class EchoTeam(Team):
    """Another rank that is always as far as rank 0, and can be lost."""

    def __init__(self) -> None:
        self.place = Place(rank=0, ranks=2)
        self.shared = 0
        self.heard: list[Word] = []
        """What rank 0 said, but for its farewell."""
        self.is_lost = False
        self.stops = False

    def share(self, data: bytes) -> bytes:
        self.shared += 1
        return data

    def hear(self, mine: Sequence[float]) -> list[list[float]]:
        self._require_other()
        if len(mine) == 1:
            return [list(mine)] * 2
        word = Word.from_numbers(mine)
        self.heard.append(word)
        return [word.to_numbers(), replace(word, stops=self.stops).to_numbers()]

    def average(self, tensors: Sequence[Tensor]) -> None:
        """The mean of equals."""
        del tensors
        self._require_other()

    def close(self) -> None:
        """Nothing is open."""

    def _require_other(self) -> None:
        if self.is_lost:
            raise RanksLost("the other rank is gone")


class RankScene:
    """Ranks with equal tiny learners."""

    def __init__(self, ranks: int = 2, *, works_meanwhile: bool = False) -> None:
        self.meeting = Meeting(ranks)
        self.heard: list[int] = []
        """Ranks, each time they had done what else there was to do."""
        self.sources = [HandFedSource() for _ in range(ranks)]
        company = UpdateSettings(second_threads=int(works_meanwhile))
        self.learners = [tiny_learner(company) for _ in range(ranks)]
        self.trainings = [
            RankedTraining(
                Training(learner, source, uses=1, works_meanwhile=works_meanwhile),
                ThreadVoice(self.meeting, rank),
            )
            for rank, (learner, source) in enumerate(zip(self.learners, self.sources, strict=True))
        ]

    def feed(self, rank: int, seed: int = 0) -> None:
        batch = random_batch(4, seed=seed)
        self.sources[rank].feed(batch, batch.weights.double() + 0.1, STEERING.beta)

    def turn(self, *, stops: Sequence[int] = ()) -> list[bool]:
        """One round of all ranks; which of them trained."""
        results: dict[int, bool] = {}

        def one(rank: int) -> None:
            results[rank] = self.trainings[rank].turn(
                lambda: STEERING,
                stops=rank in stops,
                meanwhile=lambda: self.heard.append(rank),
            )

        self.all_ranks(one)
        return [results[rank] for rank in range(len(self.trainings))]

    def all_ranks(self, act: Callable[[int], None]) -> None:
        threads = [
            threading.Thread(target=act, args=(rank,)) for rank in range(len(self.trainings))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
