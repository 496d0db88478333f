"""Processes and GPUs of a run from its heartbeats, and why processes were started again."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final, Literal

import psutil

from common.ids import PEER_ID_PATTERN
from common.run_paths import RunPaths
from launch.control_room.heartbeats import Beats, in_order, last_beats
from launch.control_room.now import number
from launch.control_room.safe_files import read_bytes, read_object, tail_lines

Level = Literal["good", "waiting", "bad", "ended"]
LOG_TAIL_BYTES: Final = 256 * 1024
NODE_TAIL_BYTES: Final = 16 * 1024
"""Of each node of a cluster but the first, where the servers are."""
MAX_RESTARTS: Final = 200
MAX_LAUNCHERS: Final = 32
DEFAULT_INTERVAL_S: Final = 5.0
END_LINE: Final = re.compile(
    r"^(?P<when>\S+ \S+) \w+ \[.*?\] process ended(?P<how>, restarting| for good) "
    r"child=(?P<child>\S+) reason=(?P<reason>.*) exit_code=(?P<code>-?[0-9]{1,9}) "
)
STOPPED: Final = "stopped"
"""The last word of an actor that was told to end: it is not missing."""
SHOWN: Final[tuple[str, ...]] = (
    *("time", "role", "index", "pid", "uptime_s", "state", "progress", "progress_per_s"),
    *("cpu_percent", "rss_mb", "threads", "open_files", "share_wait", "weight_version"),
    *("weight_age_s", "episodes_unsent", "blocks_dropped", "max_x", "checkpoint_error"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """How fresh a heartbeat must be, and who is known to live on this machine."""

    now_s: float
    interval_s: float
    lives_here: Callable[[int, float], bool]
    """Whether a process of that number lives and lived then."""

    @property
    def silent_after_s(self) -> float:
        """A beat comes once per interval; half of one more, or a second, is a busy machine."""
        return self.interval_s + max(0.5 * self.interval_s, 1.0)


def lived_at(pid: int, unix_s: float) -> bool:
    """Whether the process is alive and the same as then: numbers are used again."""
    try:
        process = psutil.Process(pid)
        return process.create_time() <= unix_s + 1 and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, OverflowError, ValueError):
        return False


def interval_of(config: Mapping[str, object]) -> float:
    """Seconds between two heartbeats, from the config.json of a run."""
    settings = config.get("settings")
    run = settings.get("run") if isinstance(settings, Mapping) else None
    told = run.get("metrics_interval_s") if isinstance(run, Mapping) else None
    return number(told) or DEFAULT_INTERVAL_S


def goes_on(paths: RunPaths, now_s: float) -> bool:
    """Judged from the last heartbeats alone: no more is read of a run that is over."""
    interval_s = interval_of(read_object(paths.config) or {})
    life = Life(now_s=now_s, interval_s=interval_s, lives_here=lived_at)
    return not is_over(last_beats(paths), paths, life)


def is_over(beats: Beats, paths: RunPaths, life: Life) -> bool:
    """Nobody of the run lives here, and none that may live elsewhere was heard of lately."""
    last = [records[-1] for records in beats.values()]
    ages = [life.now_s - (number(beat.get("time")) or 0.0) for beat in last]
    if min(ages, default=float("inf")) <= life.silent_after_s:
        return False
    launcher = (read_bytes(paths.lock, 32) or b"").decode("ascii", errors="replace").strip()
    heard_s = max((number(beat.get("time")) or 0.0 for beat in last), default=0.0)
    if launcher.isdigit() and life.lives_here(int(launcher), heard_s):
        return False
    return not any(_lives(beat, life) for beat in last)


def _lives(beat: Mapping[str, object], life: Life) -> bool:
    pid, heard_s = beat.get("pid"), number(beat.get("time"))
    return isinstance(pid, int) and heard_s is not None and life.lives_here(pid, heard_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What holds for all processes of a run."""

    over: bool
    local: bool
    """Its processes live on this machine, so one that does not is gone."""


def run_state(beats: Beats, paths: RunPaths, life: Life) -> RunState:
    local = any(_lives(records[-1], life) for records in beats.values())
    return RunState(over=is_over(beats, paths, life), local=local)


def judge(beat: Mapping[str, object], state: RunState, life: Life) -> tuple[Level, str]:
    """How a process does: a colour and words."""
    words = str(beat.get("state", "starting"))[:120]
    if state.over:
        return "ended", "ended"
    silent_s = life.now_s - (number(beat.get("time")) or 0.0)
    if words == STOPPED and not _lives(beat, life):
        return "ended", words
    # Without a pid it lives on another machine: all that is known of it is when it was heard.
    is_here = isinstance(beat.get("pid"), int)
    if state.local and is_here and not _lives(beat, life):
        return "bad", f"gone for {max(silent_s, 0.0):.0f} s"
    if silent_s > life.silent_after_s:
        return "bad", f"silent for {silent_s:.0f} s"
    is_waiting = words.startswith(("waiting", "starting"))
    return ("waiting" if is_waiting else "good"), words


def describe_processes(
    beats: Beats,
    ends: Beats,
    state: RunState,
    life: Life,
) -> list[dict[str, object]]:
    rows = []
    for peer in in_order(beats):
        records = beats[peer]
        level, words = judge(records[-1], state, life)
        history = list(ends.get(peer, ()))
        rows.append(
            {
                "name": peer,
                "level": level,
                "words": words,
                "beat": {name: records[-1].get(name) for name in SHOWN if name in records[-1]},
                "rates": [number(record.get("progress_per_s")) for record in records],
                "restarts": len(history),
                "ends": history[-5:],
            }
        )
    return rows


def describe_gpus(beats: Beats) -> list[dict[str, object]]:
    """One row per board, as the learner read it last."""
    learner = (beats.get("learner-0") or [{}])[-1]
    found: dict[int, dict[str, object]] = {}
    for name, value in learner.items():
        match = re.fullmatch(r"gpu(\d{1,2})_(\w+)", name)
        if match:
            found.setdefault(int(match[1]), {"index": int(match[1])})[match[2]] = value
    return [found[index] for index in sorted(found)]


def read_ends(paths: RunPaths) -> dict[str, list[dict[str, object]]]:
    """Why lives of processes ended, from the logs of the launchers, oldest first.

    Each node of a cluster has one, with a number of its own.
    """
    tails = {"launcher-0": LOG_TAIL_BYTES, "launcher-1": LOG_TAIL_BYTES}
    tails |= {f"launcher-{number}": NODE_TAIL_BYTES for number in range(2, MAX_LAUNCHERS)}
    lines = chain(*(tail_lines(paths.process_log(log), 10_000, tails[log]) for log in tails))
    matches = [match for line in lines if (match := END_LINE.match(line)) is not None]
    found: dict[str, deque[dict[str, object]]] = {}
    for match in sorted(matches, key=lambda match: match["when"]):
        if not PEER_ID_PATTERN.fullmatch(match["child"]):
            continue
        found.setdefault(match["child"], deque(maxlen=MAX_RESTARTS)).append(
            {
                "when": match["when"],
                "reason": match["reason"][:200],
                "exit_code": int(match["code"]),
                "again": match["how"] == ", restarting",
            }
        )
    return {peer: list(ends) for peer, ends in found.items()}


def log_of(paths: RunPaths, peer: str, count: int) -> list[str]:
    """The last lines of the log of a process; `peer` must be a name that we know."""
    return [line[:400] for line in tail_lines(paths.process_log(peer), count, LOG_TAIL_BYTES)]
