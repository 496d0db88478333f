"""A part of the benchmark `learner`: the same work with one thread and with two, in turns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import torch

from launch.benchmarks.measure import Bench, Contender, Result, Work, measure

THREADS: Mapping[str, int] = {"one thread": 1, "two threads": 2}


def measure_threads(contenders: Mapping[str, Contender], rounds: int) -> Result:
    """By the wall clock: the time of a thread says nothing of what another one does for it."""
    cores = os.cpu_count() or 1
    if cores < max(THREADS.values()):
        return Result([], (f"two threads are not measured: this machine has {cores} core",))
    before = torch.get_num_threads()
    try:
        return measure(Bench(contenders=with_threads(contenders)), rounds)
    finally:
        torch.set_num_threads(before)


def with_threads(contenders: Mapping[str, Contender]) -> dict[str, Contender]:
    """Each with one thread, which is its reference, and then with two."""
    return {
        f"{name}, {words}": replace(
            one, work=partial(_work_with, threads, one.work), group=f"threads: {name}"
        )
        for name, one in contenders.items()
        for words, threads in THREADS.items()
    }


def _work_with(threads: int, work: Work) -> None:
    torch.set_num_threads(threads)
    work()
