"""A part of the benchmark `learner`: the same work with one thread and with two, in turns.

Two threads inside torch meet in every operator; a second one beside the learner's own, as training
uses it, takes whole passes of the networks.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch

from launch.benchmarks.measure import Bench, Contender, Result, Work, measure

THREADS: Mapping[str, int] = {"one thread": 1, "two threads": 2}


def measure_threads(
    contenders: Mapping[str, Contender], rounds: int, beside: Mapping[str, Work] | None = None
) -> Result:
    """By the wall clock: the time of a thread says nothing of what another one does for it.

    `beside` has the same work with a thread beside, for those that have it.
    """
    cores = os.cpu_count() or 1
    if cores < max(THREADS.values()):
        return Result([], (f"two threads are not measured: this machine has {cores} core",))
    before = torch.get_num_threads()
    try:
        return measure(Bench(contenders=with_threads(contenders, beside or {})), rounds)
    finally:
        torch.set_num_threads(before)


def with_threads(
    contenders: Mapping[str, Contender], beside: Mapping[str, Work]
) -> dict[str, Contender]:
    """Each with one thread, which is its reference, and then with two."""
    found: dict[str, Contender] = {}
    for name, one in contenders.items():
        ways = {words: (threads, one.work) for words, threads in THREADS.items()}
        if name in beside:
            ways["a thread beside"] = (1, beside[name])
        for words, (threads, work) in ways.items():
            found[f"{name}, {words}"] = replace(
                one, work=partial(_work_with, threads, work), group=f"threads: {name}"
            )
    return found


def _work_with(threads: int, work: Work) -> None:
    torch.set_num_threads(threads)
    work()
