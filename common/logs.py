"""Logging of a process: one file per process, constant event phrases, values in `extra`."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path

from common.errors import ConfigError

# What a record has by itself; everything else in it came through `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "area"}

AREAS: Mapping[str, str] = {
    "actor": "actor",
    "actor.env": "env",
    "launch": "train",
    "launch.backfill_global_step": "migrate",
    "launch.benchmark": "benchmark",
    "launch.benchmarks": "benchmark",
    "launch.relay": "relay",
    "learner": "train",
    "replay_server": "replay",
}
"""What a package is about, as its lines begin; for a module the nearest of its packages."""
AREAS_OF_ROLES: Mapping[str, str] = {
    "actor": "actor",
    "evaluator": "actor",
    "relay": "relay",
    "replay_server": "replay",
}
"""For code that all processes share."""


def area_of(module: str, role: str) -> str:
    """The word in brackets before an event: where it belongs, whatever process it happened in."""
    while module:
        if module in AREAS:
            return AREAS[module]
        module = module.rpartition(".")[0]
    return AREAS_OF_ROLES.get(role, "train")


class EventFormatter(logging.Formatter):
    """`time level [role-index pid run] [area] event key=value ...` on one line."""

    def __init__(self, run: str, role: str, index: int) -> None:
        who = f"[{role}-{index} pid={os.getpid()} run={run}]"
        super().__init__(f"%(asctime)s %(levelname)s {who} %(area)s%(message)s")
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        area, event = f"[{area_of(record.name, self._role)}]", str(record.msg)
        if event.startswith(area):
            area = ""
        elif not event.startswith("["):
            # An event in brackets of its own follows at once: `[replay][stat] fill=40%`.
            area += " "
        record.area = area
        text = super().format(record)
        extra = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        if not extra:
            return text
        first, newline, rest = text.partition("\n")
        values = " ".join(f"{key}={_one_line(value)}" for key, value in extra.items())
        return f"{first} {values}{newline}{rest}"


def _one_line(value: object) -> str:
    # A value may be a peer's text, which must not look like a record of its own.
    return str(value).replace("\r", "\\r").replace("\n", "\\n")


class LogFile(logging.FileHandler):
    """Appends to a file that is no link: in a run from elsewhere one could lead anywhere."""

    def _open(self) -> TextIOWrapper:
        return os.fdopen(open_log(Path(self.baseFilename)), "a", encoding="utf-8")


def open_log(path: Path) -> int:
    """A descriptor that appends."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    return os.open(path, flags, 0o666)


def configure_logging(run: str, role: str, index: int, log_file: Path | None = None) -> None:
    """Send everything from INFO up to the file, or to stderr when a person started the process."""
    handler: logging.Handler
    if log_file is None:
        handler = logging.StreamHandler()
    else:
        try:
            log_file.parent.mkdir(parents=True, exist_ok=True)
            handler = LogFile(log_file, encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"cannot write the log {log_file}: {error.strerror}; "
                "make its folder writable, or choose another --log-file or --runs-dir"
            ) from error
    handler.setFormatter(EventFormatter(run, role, index))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class RareLog:
    """Lets one message per key and interval through."""

    def __init__(self, interval_s: float = 60.0) -> None:
        self._interval_s = interval_s
        self._last_s: dict[str, float] = {}

    def allows(self, key: str, now_s: float) -> bool:
        last = self._last_s.get(key)
        if last is not None and now_s - last < self._interval_s:
            return False
        if len(self._last_s) > 1_000:  # noqa: PLR2004 - peers choose keys, memory stays bounded
            self._last_s.clear()
        self._last_s[key] = now_s
        return True
