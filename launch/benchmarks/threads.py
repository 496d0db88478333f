"""A part of the benchmark `learner`: the same work with one thread and with two, in turns.

Two threads inside torch meet in every operator; a second one beside the learner's own, as training
uses it, takes whole passes of the networks and gradients. Updates are compared with the plain one
as it comes: with two threads that spin at barriers, as torch has them do by itself. OpenMP reads
that once in a process, so this one is a child; threads of this process sleep there, as in a run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch

from launch.benchmarks.measure import Bench, Contender, Result, Work, measure
from launch.benchmarks.scene import Scene, Talker

THREADS: Mapping[str, int] = {"one thread": 1, "two threads": 2}
ANSWER_DEADLINE_S = 120.0
SPINNING_S = 0.05
"""By then threads that spin at a barrier are asleep."""


def measure_threads(
    contenders: Mapping[str, Contender],
    rounds: int,
    beside: Mapping[str, Work] | None = None,
    first: Mapping[str, Contender] | None = None,
) -> Result:
    """By the wall clock: the time of a thread says nothing of what another one does for it.

    `beside` has the same work with a thread beside, for those that have it; `first` has what
    threads of this process have no part in.
    """
    cores = os.cpu_count() or 1
    if cores < max(THREADS.values()):
        return Result([], (f"two threads are not measured: this machine has {cores} core",))
    before = torch.get_num_threads()
    ways = {**(first or {}), **with_threads(contenders, beside or {})}
    try:
        return measure(Bench(contenders=ways), rounds)
    finally:
        torch.set_num_threads(before)


def with_threads(
    contenders: Mapping[str, Contender], beside: Mapping[str, Work]
) -> dict[str, Contender]:
    """Each with one thread and then with two; of a group of its own where it has none."""
    found: dict[str, Contender] = {}
    for name, one in contenders.items():
        ways = {words: (threads, one.work) for words, threads in THREADS.items()}
        if name in beside:
            ways["a thread beside"] = (1, beside[name])
        for words, (threads, work) in ways.items():
            found[f"{name}, {words}"] = replace(
                one, work=partial(_work_with, threads, work), group=one.group or f"threads: {name}"
            )
    return found


def plain_update(scene: Scene, network: str, batch_size: int) -> Work:
    """The plain update in a child with two threads and with torch's own setting of OpenMP."""
    job = {"network": network, "batch_size": batch_size, "threads": max(THREADS.values())}
    talker = Talker(scene, f"plain-{network}", "launch.benchmarks.plain_child", job, threads=None)

    def update() -> None:
        talker.tell({})
        talker.hear(ANSWER_DEADLINE_S)

    return update


def updates(update: Work, count: int, group: str) -> Contender:
    """So many in a turn.

    What a thread beside goes on with after an update belongs to the next one, so one alone would
    begin with nothing and leave work to its neighbours in the round.
    """

    def turn() -> object:
        return [update() for _ in range(count)][-1]

    return Contender(work=turn, unit="update", units_per_turn=count, group=group)


def _work_with(threads: int, work: Work) -> None:
    torch.set_num_threads(threads)
    work()
