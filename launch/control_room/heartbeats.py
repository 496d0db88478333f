"""Heartbeats of a run: of each process from its own file, of others from the learner's one file.

Actors on other machines leave no file here, or one that names their host. Their pid says nothing
here, so they are told without it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from common.host import is_from_here
from common.ids import PEER_ID_PATTERN
from common.run_paths import RunPaths
from launch.control_room.line_tail import LineTail, Record
from launch.control_room.now import number
from launch.control_room.safe_files import tail_records

Beats = Mapping[str, Sequence[Mapping[str, object]]]
"""The newest heartbeats by process, oldest first."""
BEAT_TAIL_BYTES: Final = 96 * 1024
LAST_BEAT_BYTES: Final = 8 * 1024
RUN_WIDE_BYTES: Final = 4 * 1024 * 1024
"""Of a longer file of all heartbeats the last eighth of this is read: older ones are not shown."""
SPARK_BEATS: Final = 60
MAX_PROCESSES: Final = 256
ROLE_ORDER: Final = ("learner", "replay_server", "relay", "actor", "evaluator")
Stamp = tuple[int, int, int]


class Heartbeats:
    """Reads again only what has changed."""

    def __init__(self, paths: RunPaths, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[float, float]] = {}
        """Of processes elsewhere: the time of their newest line, and when it came, by our clock."""
        self._paths = paths
        self._known: dict[Path, tuple[Stamp | None, list[Record]]] = {}
        self._run_wide = LineTail(paths.heartbeat, whole_bytes=RUN_WIDE_BYTES, sampled_lines=0)
        self._far: dict[str, deque[Record]] = {}
        """Of processes elsewhere, as far as the learner has heard them."""

    def read(self) -> dict[str, list[Record]]:
        files = beat_files(self._paths)
        self._known = {file: self._read_file(file) for file in files}
        beats = {file.stem: records for file, (_, records) in self._known.items() if records}
        with_file = {file.stem for file in files}
        self._follow(with_file)
        for peer, records in self._far.items():
            # A file may be left from a time when its process was here, or be brought here late.
            if _told_s(beats.get(peer, ())) < _told_s(records):
                beats[peer] = list(records)
        shown = sorted(beats, key=rank)[:MAX_PROCESSES]
        return {peer: self._by_our_clock(peer, beats[peer]) for peer in shown}

    def _read_file(self, file: Path) -> tuple[Stamp | None, list[Record]]:
        stamp = _stamp(file)
        known = self._known.get(file)
        if known is not None and stamp is not None and known[0] == stamp:
            return known
        # What is written meanwhile changes the stamp once more.
        return stamp, [as_seen_here(one) for one in tail_records(file, BEAT_TAIL_BYTES)][
            -SPARK_BEATS:
        ]

    def _follow(self, with_file: set[str]) -> None:
        records = list(self._run_wide.read_new())
        if self._run_wide.was_replaced:
            self._far.clear()
        for record in records:
            peer = f"{record.get('role')}-{record.get('index')}"
            is_elsewhere = peer not in with_file or not is_from_here(record)
            if is_elsewhere and PEER_ID_PATTERN.fullmatch(peer):
                beats = self._far.setdefault(peer, deque(maxlen=SPARK_BEATS))
                beats.append({**record, "pid": None})
        for peer in sorted(self._far, key=rank)[MAX_PROCESSES:]:
            del self._far[peer]

    def _by_our_clock(self, peer: str, records: list[Record]) -> list[Record]:
        """Silence of another machine begins when we heard it last: its clock may be another."""
        *before, last = records
        if last.get("pid") is not None:
            return records
        told_s, now_s = number(last.get("time")) or 0.0, self._clock()
        known = self._heard.get(peer)
        if known is None:
            self._heard[peer] = told_s, min(told_s, now_s)
        elif known[0] != told_s:
            self._heard[peer] = told_s, now_s
        return [*before, {**last, "time": self._heard[peer][1]}]


def _told_s(records: Sequence[Record]) -> float:
    return (number(records[-1].get("time")) or 0.0) if records else float("-inf")


def last_beats(paths: RunPaths) -> dict[str, list[Record]]:
    """One of every process that has a file."""
    read = {file.stem: tail_records(file, LAST_BEAT_BYTES)[-1:] for file in beat_files(paths)}
    return {
        peer: [as_seen_here(one) for one in records] for peer, records in read.items() if records
    }


def as_seen_here(record: Record) -> Record:
    """Without the pid of another machine, which belongs to somebody else on this one."""
    return record if is_from_here(record) else {**record, "pid": None}


def beat_files(paths: RunPaths) -> list[Path]:
    """Of many actors some are left out, of the other roles none."""
    try:
        files = list((paths.root / "heartbeats").glob("*.jsonl"))
    except OSError:
        return []
    named = [file for file in files if PEER_ID_PATTERN.fullmatch(file.stem)]
    return sorted(named, key=lambda file: rank(file.stem))[:MAX_PROCESSES]


def rank(peer: str) -> tuple[bool, int, int]:
    return peer.startswith("actor-"), *place(peer)


def place(peer: str) -> tuple[int, int]:
    """In which order processes are shown."""
    role, _, index = peer.rpartition("-")
    known = ROLE_ORDER.index(role) if role in ROLE_ORDER else len(ROLE_ORDER)
    return known, int(index)


def in_order(peers: Iterable[str]) -> list[str]:
    return sorted(peers, key=place)


def _stamp(file: Path) -> Stamp | None:
    try:
        status = file.lstat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
