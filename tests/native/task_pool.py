"""Many independent tasks in a few processes, with a progress bar, or lines where nobody watches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Generic, Protocol, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from common.errors import ConfigError


class Task(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def amount(self) -> int:
        """How much of the whole it is, in the unit of the progress bar."""
        ...


T = TypeVar("T", bound=Task)
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Crew(Generic[T, R]):
    """`work` must be a plain function of a module: the processes are started afresh."""

    work: Callable[[T], R]
    describe: Callable[[R], str]
    processes: int
    unit: str

    def __post_init__(self) -> None:
        if self.processes < 1:
            raise ConfigError(f"--processes must be at least 1, got {self.processes}")


def run_all(crew: Crew[T, R], tasks: Sequence[T], console: Console) -> Iterator[R]:
    """Results in the order in which they come; what has not begun is dropped when one raises."""
    # One process per core: threads of the numeric libraries would only be in their way.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    total = sum(task.amount for task in tasks)
    columns = (
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} " + crew.unit),
        BarColumn(),
        TimeRemainingColumn(),
    )
    with (
        Progress(*columns, console=console) as progress,
        ProcessPoolExecutor(crew.processes, mp_context=get_context("spawn")) as pool,
    ):
        bar = progress.add_task("", total=total)
        futures = {pool.submit(crew.work, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                result = future.result()
                progress.advance(bar, futures[future].amount)
                _tell(progress, bar, crew.describe(result))
                yield result
        finally:
            pool.shutdown(cancel_futures=True)


def _tell(progress: Progress, bar: TaskID, line: str) -> None:
    if progress.console.is_terminal:
        return
    done = progress.tasks[bar].completed
    progress.console.print(f"{done:,.0f} {line}", highlight=False, markup=False, soft_wrap=True)
