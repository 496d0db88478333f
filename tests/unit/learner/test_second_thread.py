"""A learner with a second thread: the same updates, and nothing that outlives their memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from common.batch import Batch
from common.config import Settings
from learner.assembly import build_learner
from learner.losses import NextQuantiles, double_q_loss
from learner.second_thread import AtOnce, SecondThread
from learner.snapshot import restore_snapshot, take_snapshot
from learner.training import Training
from learner.update import Learner, Meanwhile, UpdateSettings
from tests.learner_factory import random_batch, tiny_learner
from tests.rank_scene import HandFedSource

BATCHES = [random_batch(seed=seed) for seed in range(8)]


@pytest.fixture
def learners(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Learner]]:
    """What a test makes is closed at its end."""
    monkeypatch.setattr("learner.update.has_fast_bfloat16", lambda: True)
    made: list[Learner] = []
    yield made
    for learner in made:
        learner.close()


def make(learners: list[Learner], **settings: Any) -> Learner:
    learners.append(tiny_learner(UpdateSettings(target_sync_interval_updates=3, **settings)))
    return learners[-1]


def train(learner: Learner, upcoming: list[Batch | None]) -> list[float]:
    pairs = zip(BATCHES, upcoming, strict=True)
    return [learner.update(batch, gives(after)).loss for batch, after in pairs]


def gives(upcoming: Batch | None) -> Meanwhile:
    """What there is to do besides an update: nothing; this is the batch after it."""
    return lambda: upcoming


def settle(learner: Learner) -> None:
    """Until the second thread has nothing more to do."""
    assert isinstance(learner._aside, SecondThread)
    learner._aside._pool.submit(int).result(timeout=10)


def count_looks(learner: Learner) -> list[int]:
    """The size of every batch that the target looks at."""
    looks: list[int] = []
    network = learner._target_layers.network
    network.register_forward_hook(lambda _, given, __: looks.append(len(given[0])))
    return looks


@pytest.mark.parametrize("precision", ["off", "bfloat16"])
@pytest.mark.parametrize(
    "upcoming",
    [[*BATCHES[1:], None], [None] * 8, BATCHES, [BATCHES[0]] * 8],
    ids=["known", "unknown", "the same again", "wrong"],
)
def test_two_threads_learn_the_same_bit_for_bit(
    learners: list[Learner], precision: str, upcoming: list[Batch | None]
) -> None:
    alone = make(learners, mixed_precision=precision)
    both = make(learners, mixed_precision=precision, second_threads=1)

    losses = [train(alone, [None] * 8), train(both, upcoming)]

    assert losses[0] == losses[1]
    assert all(map(torch.equal, alone.online.parameters(), both.online.parameters()))
    assert all(map(torch.equal, alone.target.parameters(), both.target.parameters()))


def test_the_target_looks_at_a_batch_once_and_early(learners: list[Learner]) -> None:
    learner = make(learners, second_threads=1)
    looks = count_looks(learner)

    learner.update(BATCHES[0], gives(random_batch(5)))
    settle(learner)
    early = list(looks)
    learner.update(random_batch(5))

    assert early == [8, 5]
    assert looks == [8, 5, 5]


def test_what_was_found_early_is_used(learners: list[Learner]) -> None:
    learner = make(learners, second_threads=1)
    looks = count_looks(learner)

    for batch, after in zip(BATCHES, [*BATCHES[1:], None], strict=True):
        learner.update(batch, gives(after))
        settle(learner)

    # Eight batches, and after each of two new targets one again, if the old one had looked at it.
    assert 8 <= len(looks) <= 8 + 2


def test_without_a_second_thread_nothing_is_done_early(learners: list[Learner]) -> None:
    learner = make(learners)
    looks = count_looks(learner)

    learner.update(BATCHES[0], gives(BATCHES[1]))

    assert not learner.looks_ahead
    assert len(looks) == 1


@torch.no_grad()
def autocast_loss(learner: Learner, batch: Batch) -> float:
    """With weights that are cast where they are used."""
    with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False):
        after = NextQuantiles(
            online=learner.online(batch.next_observations, batch.next_prev_actions),
            target=learner.target(batch.next_observations, batch.next_prev_actions),
        )
        quantiles = learner.online(batch.observations, batch.prev_actions)
    return double_q_loss(quantiles, batch, after).loss.item()


def test_layers_in_half_precision_are_those_of_autocast(learners: list[Learner]) -> None:
    learner = make(learners, mixed_precision="bfloat16", learning_rate=1e-2)

    losses = [(autocast_loss(learner, batch), learner.update(batch).loss) for batch in BATCHES]

    assert all(expected == found for expected, found in losses)


def test_layers_in_half_precision_follow_a_restored_state(learners: list[Learner]) -> None:
    trained = make(learners, mixed_precision="bfloat16")
    train(trained, [None] * 8)
    other = make(learners, mixed_precision="bfloat16", second_threads=1)
    other.update(BATCHES[0], gives(BATCHES[1]))

    restore_snapshot(other, take_snapshot(trained))

    assert other.update(BATCHES[1]).loss == trained.update(BATCHES[1]).loss


def test_an_error_of_the_second_thread_reaches_the_learner(learners: list[Learner]) -> None:
    learner = make(learners, second_threads=1)

    def fail(*_: object) -> None:
        raise RuntimeError("no memory")

    learner._target_layers.network.register_forward_hook(fail)

    with pytest.raises(RuntimeError, match="no memory"):
        learner.update(BATCHES[0])


def test_closing_waits_for_what_reads_a_batch(learners: list[Learner]) -> None:
    learner = make(learners, second_threads=1)
    is_reading, has_read = threading.Event(), threading.Event()
    learner.update(BATCHES[0])

    def read() -> None:
        is_reading.set()
        has_read.wait(0.2)
        has_read.set()

    learner._next._aside.begin(read)
    assert is_reading.wait(5)
    learner.close()

    assert has_read.is_set()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("second")]


@pytest.mark.parametrize("kind", [AtOnce, SecondThread])
def test_every_piece_of_work_is_done_once_whoever_asks_first(
    kind: type[AtOnce | SecondThread],
) -> None:
    aside, done = kind(), list[int]()

    answers = [aside.begin(partial(done.append, number)) for number in range(50)]
    for answer in reversed(answers):
        answer()
    aside.close()

    assert sorted(done) == list(range(50))


@pytest.fixture
def busy() -> Iterator[tuple[SecondThread, threading.Event]]:
    """A second thread with a piece of work that ends when the event is set."""
    aside, is_begun, may_end = SecondThread(), threading.Event(), threading.Event()

    def work() -> None:
        is_begun.set()
        may_end.wait(10)

    aside.begin(work)
    assert is_begun.wait(10)
    yield aside, may_end
    may_end.set()
    aside.close()


def test_work_that_was_not_begun_is_done_by_who_wants_it(
    busy: tuple[SecondThread, threading.Event],
) -> None:
    aside, _ = busy

    doer = aside.begin(threading.current_thread)()

    assert doer is threading.current_thread()


def test_work_that_was_dropped_is_not_begun(busy: tuple[SecondThread, threading.Event]) -> None:
    aside, may_end = busy
    done: list[int] = []

    aside.begin(partial(done.append, 1)).drop()
    may_end.set()
    aside.begin(partial(done.append, 2))
    aside.close()

    assert done == [2]


def test_work_that_was_begun_is_waited_for_when_dropped() -> None:
    aside, is_begun, done = SecondThread(), threading.Event(), list[int]()

    def work() -> None:
        is_begun.set()
        time.sleep(0.05)
        done.append(1)

    answer = aside.begin(work)
    assert is_begun.wait(10)
    answer.drop()

    assert done == [1]
    aside.close()


@pytest.mark.parametrize(("uses", "announced"), [(1, [1, 2, 0]), (2, [0, 1, 0, 2, 0, 0])])
def test_training_announces_the_batch_after_the_last_use(
    learners: list[Learner], monkeypatch: pytest.MonkeyPatch, uses: int, announced: list[int]
) -> None:
    learner = make(learners, second_threads=1)
    source = HandFedSource()
    for batch in BATCHES[:3]:
        source.feed(batch, torch.ones(8), 0.4)
    told: list[int] = []
    update = learner.update

    def watch(batch: Batch, meanwhile: Meanwhile) -> object:
        upcoming = meanwhile()
        told.append(0 if upcoming is None else BATCHES.index(upcoming))
        return update(batch)

    monkeypatch.setattr(learner, "update", watch)
    training = Training(learner, source, uses=uses, works_meanwhile=True)
    while (ready := training.take()) is not None:
        training.train(ready)

    assert told == announced


@pytest.mark.parametrize(
    ("threads", "compiles", "divided"),
    [(1, False, (1, 0)), (2, False, (1, 1)), (5, False, (3, 2)), (2, True, (2, 0))],
)
def test_threads_are_divided(
    learners: list[Learner],
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    compiles: bool,
    divided: tuple[int, int],
) -> None:
    own = [threads]
    monkeypatch.setattr("torch.set_num_threads", own.append)
    base = Settings()
    settings = replace(
        base,
        run=replace(base.run, device="cpu"),
        learner=replace(base.learner, compile=compiles),
    )

    learners.append(build_learner(settings, threads))

    assert (own[-1], learners[-1].settings.second_threads) == divided
