"""The clears of a process, one JSON line each: a trace and the circumstances it came from."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from common.errors import ConfigError, TraceInvalid
from common.jsonl import JsonlWriter
from common.traces import Trace, trace_fields, trace_of_fields

log = logging.getLogger(__name__)


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
            try:
                self._file = JsonlWriter(self._path)
            except ConfigError as error:
                # A disk that is full now may have room at the next clear; play goes on.
                log.warning("clear not recorded", extra={"error": str(error)})
                return
        record = {"time": time.time(), **asdict(circumstances), "trace": trace_fields(trace)}
        self._file.write(record)
        self.written += 1

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def read_trace_log(path: Path) -> Iterator[Trace | TraceInvalid]:
    """Each line's trace, or what is wrong with it; a torn last line is being written or was."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n"):
                yield _trace_of_line(line, f"{path}, line {number}")


def trace_line_problem(line: bytes) -> str:
    """What keeps a line from being a trace, or empty."""
    if not line.endswith(b"\n"):
        return "torn: its writer was killed inside it"
    item = _trace_of_line(line, "")
    return str(item).removeprefix(": ") if isinstance(item, TraceInvalid) else ""


def _trace_of_line(line: bytes, where: str) -> Trace | TraceInvalid:
    try:
        record = json.loads(line)
        return trace_of_fields(record.get("trace") if isinstance(record, dict) else None)
    except TraceInvalid as error:
        return TraceInvalid(f"{where}: {error}")
    except (ValueError, RecursionError):
        return TraceInvalid(f"{where}: damaged, not JSON")
