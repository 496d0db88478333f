"""Whether a process grows while it is attacked."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from tests.process_system import ProcessSystem


@dataclass
class Watch:
    """Memory of a process before and after."""

    process: psutil.Process
    before_mb: float

    @classmethod
    def of(cls, system: ProcessSystem, peer: str) -> Watch:
        process = psutil.Process(system.processes[peer].pid)
        return cls(process, process.memory_info().rss / 2**20)

    def growth_mb(self) -> float:
        return self.process.memory_info().rss / 2**20 - self.before_mb
