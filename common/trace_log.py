"""The clears of a process, one JSON line each: a trace and the circumstances it came from."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from common.errors import TraceInvalid
from common.jsonl import JsonlWriter, read_jsonl
from common.traces import Trace, trace_fields, trace_of_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """Who cleared the stage, and when."""

    peer: str
    agent_steps: int
    """Of the run, as far as the player knew."""
    weight_version: int
    episode_return: float


class TraceLog:
    """Appends to a file that begins to exist with the first clear."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: JsonlWriter | None = None
        self.written = 0

    def write(self, trace: Trace, circumstances: Circumstances) -> None:
        if self._file is None:
            self._file = JsonlWriter(self._path)
        record = {"time": time.time(), **asdict(circumstances), "trace": trace_fields(trace)}
        self._file.write(record)
        self.written += 1

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_trace_log(path: Path) -> Iterator[Trace | TraceInvalid]:
    """Each line's trace, or what is wrong with it; a torn line is skipped, as a kill leaves it."""
    for number, record in enumerate(read_jsonl(path), start=1):
        try:
            yield trace_of_fields(record.get("trace"))
        except TraceInvalid as error:
            yield TraceInvalid(f"{path}, record {number}: {error}")
