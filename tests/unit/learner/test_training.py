"""When priorities are sent and sockets are looked at: beside the next update, or one by one."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from learner.ready_batch import ReadyBatch
from learner.training import Steering, Training
from learner.update import Learner, UpdateSettings
from tests.learner_factory import random_batch, tiny_learner
from tests.rank_scene import HandFedSource

STEERING = Steering(learning_rate=1e-3, beta=0.4)


@dataclass
class WatchedSource(HandFedSource):
    """Notes what is asked of it, in order."""

    events: list[str] = field(default_factory=list)

    def at_hand(self) -> ReadyBatch | None:
        ready = super().at_hand()
        self.events.append("taken" if ready else "none here")
        return ready

    def next(self, timeout_ms: int) -> ReadyBatch | None:
        if timeout_ms:
            self.events.append("waits")
        return super().next(timeout_ms)

    def listen(self) -> None:
        self.events.append("listens")

    def release(self, ready: ReadyBatch) -> None:
        self.events.append("released")
        super().release(ready)

    def send_priorities(self, ready: ReadyBatch, errors: Tensor) -> None:
        self.events.append("priorities")
        super().send_priorities(ready, errors)


@pytest.fixture
def source() -> WatchedSource:
    return WatchedSource()


@pytest.fixture
def learner() -> Iterator[Learner]:
    """With a second thread."""
    made = tiny_learner(UpdateSettings(second_threads=1))
    yield made
    made.close()


def make(learner: Learner, source: WatchedSource, *, works_meanwhile: bool) -> Training:
    return Training(
        learner,
        source,
        uses=1,
        works_meanwhile=works_meanwhile,
        tell=lambda _: source.events.append("updated"),
    )


def turn(training: Training, source: WatchedSource) -> bool:
    return training.turn(
        lambda: STEERING, stops=False, meanwhile=lambda: source.events.append("hears")
    )


def feed(source: WatchedSource, count: int) -> None:
    for seed in range(count):
        source.feed(random_batch(seed=seed), torch.ones(8), 0.4)


def test_priorities_are_sent_while_the_next_update_is_computed(
    learner: Learner, source: WatchedSource
) -> None:
    training = make(learner, source, works_meanwhile=True)
    feed(source, 2)

    turn(training, source)
    source.events.clear()
    turn(training, source)

    expected = ["taken", "priorities", "released", "hears", "listens", "updated"]
    assert source.events == expected


def test_before_a_wait_nothing_is_left_undone(learner: Learner, source: WatchedSource) -> None:
    training = make(learner, source, works_meanwhile=True)
    feed(source, 1)

    turn(training, source)
    source.events.clear()
    has_trained = turn(training, source)

    assert not has_trained
    assert source.events == ["none here", "priorities", "released", "hears", "waits"]


@pytest.mark.parametrize(("second_threads", "works_meanwhile"), [(1, False), (0, True)])
def test_in_lockstep_and_with_one_thread_one_thing_is_done_after_the_other(
    source: WatchedSource, second_threads: int, works_meanwhile: bool
) -> None:
    learner = tiny_learner(UpdateSettings(second_threads=second_threads))
    training = make(learner, source, works_meanwhile=works_meanwhile)
    feed(source, 1)

    turn(training, source)

    learner.close()
    assert source.events == ["hears", "waits", "updated", "priorities", "released"]


def test_every_batch_is_told_of_once_also_at_the_end(
    learner: Learner, source: WatchedSource
) -> None:
    training = make(learner, source, works_meanwhile=True)
    feed(source, 3)

    for _ in range(3):
        turn(training, source)
    before = len(source.told)
    training.settle()
    training.settle()

    assert (before, len(source.told), source.released) == (2, 3, 3)


def test_priorities_of_an_update_that_is_not_finite_are_not_sent(
    learner: Learner, source: WatchedSource
) -> None:
    training = make(learner, source, works_meanwhile=True)
    feed(source, 1)
    source.batches[0].batch.returns.fill_(float("nan"))

    turn(training, source)
    training.settle()

    assert (source.told, source.released) == ([], 1)


def test_weights_are_those_of_whole_updates_whenever_there_is_other_work(learner: Learner) -> None:
    """What is done meanwhile may send or save them."""
    seen: list[list[Tensor]] = []

    def look() -> None:
        seen.append([weight.detach().clone() for weight in learner.online.parameters()])

    for seed in range(3):
        look()
        learner.update(random_batch(seed=seed), look)

    assert len(seen) == 6
    pairs = zip(seen[::2], seen[1::2], strict=True)
    assert all(all(map(torch.equal, before, during)) for before, during in pairs)
    assert not all(map(torch.equal, seen[0], seen[2]))


def test_the_second_thread_does_the_other_work_and_is_waited_for() -> None:
    learner, threads = tiny_learner(UpdateSettings(second_threads=1)), list[int]()

    for seed in range(20):
        learner.update(random_batch(seed=seed), lambda: threads.append(threading.get_ident()))
        assert len(threads) == seed + 1
    learner.close()

    assert set(threads) - {threading.get_ident()}


def test_work_that_the_second_thread_has_not_begun_is_done_by_the_first() -> None:
    learner, threads = tiny_learner(UpdateSettings(second_threads=1)), list[int]()
    is_busy, may_go_on = threading.Event(), threading.Event()

    def keep_busy() -> bool:
        is_busy.set()
        return may_go_on.wait(10)

    busy = learner._aside.begin(keep_busy)
    assert is_busy.wait(10)
    learner.update(random_batch(), lambda: threads.append(threading.get_ident()))
    may_go_on.set()

    assert busy()
    assert threads == [threading.get_ident()]
    learner.close()


def test_closing_waits_for_other_work_also_when_an_update_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learner, is_begun, done = tiny_learner(UpdateSettings(second_threads=1)), threading.Event(), [0]

    def work() -> None:
        is_begun.set()
        time.sleep(0.05)
        done[0] += 1

    def fail(*_: object) -> None:
        assert is_begun.wait(10)
        raise RuntimeError("no memory")

    monkeypatch.setattr("learner.update.double_q_loss", fail)

    with pytest.raises(RuntimeError, match="no memory"):
        learner.update(random_batch(), work)
    learner.close()

    assert done == [1]


@pytest.mark.parametrize("second_threads", [0, 1])
def test_an_error_of_the_other_work_reaches_the_learner(second_threads: int) -> None:
    learner = tiny_learner(UpdateSettings(second_threads=second_threads))

    def fail() -> None:
        raise ConnectionError("refused")

    with pytest.raises(ConnectionError, match="refused"):
        learner.update(random_batch(), fail)
    learner.close()
