"""Recorded play: the buttons that were held from the first frame of a stage to its end.

Whoever repeats them on the same game sees the same play. The checksum of the console's RAM after
the last agent step tells that the play ended in the same place; another play that ends there, too,
has the same. A trace holds nothing of the cartridge.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby, repeat
from pathlib import Path
from typing import Final, NoReturn

from common.atomic_files import write_atomic
from common.errors import ConfigError, TraceInvalid
from common.game import num_actions_of, parse_stage

TRACE_KIND: Final = "warpzone trace"
TRACE_VERSION: Final = 1
MAX_AGENT_STEPS: Final = 100_000
"""Many times the longest stage; it bounds what a small file can make a reader allocate."""
MAX_FILE_BYTES: Final = 1_000_000
_MAX_FRAMES_HELD: Final = 10_000
_CHECKSUM: Final = re.compile("[0-9a-f]{64}")
_INTEGERS: Final = ("seed", "noop_frames", "frame_skip")
_TEXTS: Final = ("stage", "action_set", "final_ram_sha256")
_KEYS: Final = frozenset({"kind", "version", "actions", *_INTEGERS, *_TEXTS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """One episode. Its actions are indices into `action_set`, each held for `frame_skip` frames."""

    stage: str
    seed: int
    """Of the play that was recorded; repeating it does not need it."""
    noop_frames: int
    """Emulator frames without a button before the first action."""
    frame_skip: int
    action_set: str
    actions: tuple[int, ...]
    final_ram_sha256: str
    """Of the console's 2,048 bytes of RAM after the last action, in hexadecimal digits."""

    def __post_init__(self) -> None:
        try:
            parse_stage(self.stage)
            num_actions = num_actions_of(self.action_set)
        except ConfigError as error:
            raise TraceInvalid(str(error)) from error
        _require_range("seed", self.seed, 0, 2**63 - 1)
        _require_range("noop_frames", self.noop_frames, 0, _MAX_FRAMES_HELD)
        _require_range("frame_skip", self.frame_skip, 1, _MAX_FRAMES_HELD)
        _require_range("the number of actions", len(self.actions), 1, MAX_AGENT_STEPS)
        _require_range("the smallest action", min(self.actions), 0, num_actions - 1)
        _require_range("the largest action", max(self.actions), 0, num_actions - 1)
        if not _CHECKSUM.fullmatch(self.final_ram_sha256):
            _refuse(f"final_ram_sha256 must be 64 hexadecimal digits: {self.final_ram_sha256!r}")


def ram_checksum(ram: bytes | memoryview) -> str:
    return hashlib.sha256(ram).hexdigest()


def write_trace(path: Path, trace: Trace) -> None:
    """Replace the file as a whole."""
    write_atomic(path, encode_trace(trace))


def read_trace(path: Path) -> Trace:
    """Every fault raises `TraceInvalid` with the name of the file."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
        return decode_trace(content)
    except OSError as error:
        raise TraceInvalid(f"cannot read the trace {path}: {error.strerror}") from error
    except TraceInvalid as error:
        raise TraceInvalid(f"{path} is not a trace: {error}") from error


def encode_trace(trace: Trace) -> bytes:
    """JSON, one field per line."""
    fields = trace_fields(trace)
    lines = (f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in fields.items())
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode()


def trace_fields(trace: Trace) -> dict[str, object]:
    """For JSON; actions as pairs of action and repetitions."""
    fields: dict[str, object] = {"kind": TRACE_KIND, "version": TRACE_VERSION}
    fields |= {name: getattr(trace, name) for name in (*_TEXTS, *_INTEGERS)}
    fields["actions"] = [[action, sum(1 for _ in run)] for action, run in groupby(trace.actions)]
    return fields


def decode_trace(content: bytes) -> Trace:
    if len(content) > MAX_FILE_BYTES:
        _refuse(f"larger than {MAX_FILE_BYTES} bytes")
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        _refuse("not JSON")
    return trace_of_fields(fields)


def trace_of_fields(fields: object) -> Trace:
    """The trace of a JSON value from anywhere."""
    if not isinstance(fields, dict) or fields.get("kind") != TRACE_KIND:
        _refuse(f"no object of the kind {TRACE_KIND!r}")
    if fields.get("version") != TRACE_VERSION:
        _refuse(f"expected version {TRACE_VERSION}, got {fields.get('version')!r}")
    if odd := sorted(fields.keys() ^ _KEYS):
        _refuse(f"missing or unknown fields: {', '.join(odd)[:200]}")
    for names, kind in ((_INTEGERS, int), (_TEXTS, str)):
        for name in names:
            # Not isinstance: JSON's true is no number here.
            if type(fields[name]) is not kind:
                _refuse(f"{name} must be of type {kind.__name__}, got {fields[name]!r:.40}")
    values = {name: fields[name] for name in (*_INTEGERS, *_TEXTS)}
    return Trace(**values, actions=_expand(fields["actions"]))


def _expand(runs: object) -> tuple[int, ...]:
    pairs = list(_checked_pairs(runs))
    if sum(count for _, count in pairs) > MAX_AGENT_STEPS:
        _refuse(f"more than {MAX_AGENT_STEPS} actions")
    return tuple(chain.from_iterable(repeat(action, count) for action, count in pairs))


def _checked_pairs(runs: object) -> Iterator[tuple[int, int]]:
    for pair in _list_of(runs):
        match pair:
            case [int(action), int(count)] if count > 0 and bool not in (type(action), type(count)):
                yield action, count
            case _:
                _refuse(f"actions must be pairs of action and repetitions, got {pair!r:.40}")


def _list_of(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else _refuse("actions must be a list")


def _require_range(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        _refuse(f"{name} must be from {low} to {high}, got {value}")


def _refuse(reason: str) -> NoReturn:
    raise TraceInvalid(reason)
