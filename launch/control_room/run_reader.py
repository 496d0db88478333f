"""One run, read from its files: all viewers share one reader, which looks at most twice a second.

It only reads, so an ended run and one that goes on are opened the same way.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from itertools import count
from typing import Final

import numpy as np

from common.run_paths import RunPaths
from launch.control_room.episode_log import EpisodeLog
from launch.control_room.film_files import newest_films
from launch.control_room.heartbeats import Heartbeats
from launch.control_room.level_maps import picture_of, read_maps, stage_map, stage_names
from launch.control_room.line_tail import LineTail
from launch.control_room.live_frames import LiveFrames
from launch.control_room.machines import (
    Life,
    describe_gpus,
    describe_processes,
    interval_of,
    lived_at,
    read_ends,
    run_state,
)
from launch.control_room.metric_table import MetricTable
from launch.control_room.now import (
    SPARK_NAMES,
    bottleneck_sentence,
    is_score,
    newest_evaluations,
    number,
    time_shares,
)
from launch.control_room.safe_files import read_object
from launch.control_room.series import as_numbers

LOOK_INTERVAL_S: Final = 0.5
MAPS_INTERVAL_S: Final = 5.0
MAX_EVALUATIONS: Final = 20_000
SHOWN_EVALUATIONS: Final = 12
SPARK_POINTS: Final = 60
SPARK_ROWS: Final = 600
MAKE_DEADLINE_S: Final = 30.0
"""Of an answer that another viewer has asked for."""


class RunReader:
    """Call `look` before reading; everything else is what was seen then."""

    def __init__(
        self,
        paths: RunPaths,
        clock: Callable[[], float] = time.time,
        serials: Iterator[int] | None = None,
    ) -> None:
        self.paths = paths
        self._serials = serials or count()
        self.live = LiveFrames(paths.root / "live", clock)
        self.revision = 0
        """Grows when a look has found something new."""
        self._clock = clock
        self._lock = threading.Lock()
        self._looked_s = float("-inf")
        self._forget()
        self._heartbeats = Heartbeats(paths, clock)
        self._maps_s = float("-inf")
        self._maps: list[dict[str, object]] = []
        self.config: Mapping[str, object] = {}
        self._state: dict[str, object] = {}

    def _forget(self) -> None:
        self.serial = next(self._serials)
        """Of what was read since: answers that were made of it are kept under this number."""
        self.metrics = MetricTable()
        self.evaluations: deque[dict[str, object]] = deque(maxlen=MAX_EVALUATIONS)
        self.episodes = EpisodeLog()
        self._last: dict[str, object] = {}
        root = self.paths
        self._tails = [
            (LineTail(root.metrics), self._take_metrics),
            (LineTail(root.evaluations), self._take_evaluation),
            (LineTail(root.root / "episodes.jsonl"), self.episodes.append),
        ]

    def look(self) -> None:
        """Read what is new, unless somebody did a moment ago."""
        with self._lock:
            now_s = self._clock()
            if 0 <= now_s - self._looked_s < LOOK_INTERVAL_S:
                return
            self._looked_s = now_s
            self._follow_files()
            self.config = read_object(self.paths.config) or self.config
            state = self._describe(now_s)
            if state != self._state:
                self._state = state
                self.revision += 1

    def state(self) -> dict[str, object]:
        """Everything but curves and maps, as the page shows it."""
        return self._state

    def scores(self) -> list[dict[str, object]]:
        with self._lock:
            return list(self.evaluations)

    def _follow_files(self) -> None:
        for tail, take in self._tails:
            for record in tail.read_new():
                take(record)
        if any(tail.was_replaced for tail, _ in self._tails):
            # Another run has taken the place of this one: read it from its beginning.
            self._forget()
            for tail, take in self._tails:
                for record in tail.read_new():
                    take(record)

    def _take_metrics(self, record: dict[str, object]) -> None:
        self.metrics.append(record)
        self._last = record

    def _take_evaluation(self, record: dict[str, object]) -> None:
        if is_score(record):
            self.evaluations.append(record)

    def setting(self, section: str, name: str) -> object:
        settings = self.config.get("settings")
        values = settings.get(section) if isinstance(settings, Mapping) else None
        return values.get(name) if isinstance(values, Mapping) else None

    def _describe(self, now_s: float) -> dict[str, object]:
        beats = self._heartbeats.read()
        interval_s = interval_of(self.config)
        life = Life(now_s=now_s, interval_s=interval_s, lives_here=lived_at)
        state = run_state(beats, self.paths, life)
        learning_starts = number(self.setting("replay", "learning_starts"))
        return {
            "run": self.paths.root.name,
            "there": self.paths.root.is_dir(),
            "over": state.over,
            "interval_s": interval_s,
            "silent_after_s": life.silent_after_s,
            "metrics": {name: value for name, value in self._last.items() if _is_plain(value)},
            "sentence": bottleneck_sentence(self._last, learning_starts),
            "shares": time_shares(self._last),
            "sparks": self._sparks(),
            "evaluations": newest_evaluations(list(self.evaluations), SHOWN_EVALUATIONS),
            "films": newest_films(self.paths.videos),
            "processes": describe_processes(beats, read_ends(self.paths), state, life),
            "gpus": describe_gpus(beats),
            "rows": self.metrics.seen,
            "episodes": self.episodes.episodes,
            "about": self._about(),
        }

    def _about(self) -> dict[str, object]:
        names = (("env", "stage"), ("env", "game"), ("env", "core"), ("run", "device"))
        about = {name: self.setting(section, name) for section, name in names}
        return {**about, "max_agent_steps": self.setting("run", "max_agent_steps")}

    def _sparks(self) -> dict[str, list[float | None]]:
        """The last lines, a point for every few of them."""
        every = max(1, min(self.metrics.rows, SPARK_ROWS) // SPARK_POINTS)
        newest = self.metrics.newest(SPARK_NAMES, SPARK_ROWS)
        return {
            name: as_numbers(np.asarray(values[::-1][::every][::-1]))
            for name, values in newest.items()
        }

    def stages(self) -> list[str]:
        return stage_names(self._read_maps(), self.episodes)

    def stage(self, stage: str) -> dict[str, object]:
        folder = self.paths.root / "maps"
        told = stage_map(self._read_maps(), stage, self.episodes)
        return {**told, "picture": picture_of(folder, stage)}

    def _read_maps(self) -> list[dict[str, object]]:
        with self._lock:
            now_s = self._clock()
            if not 0 <= now_s - self._maps_s < MAPS_INTERVAL_S:
                self._maps_s = now_s
                self._maps = read_maps(self.paths.root / "maps")
            return self._maps


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, int | float | str)


class BoundedCache:
    """The newest few answers, by what was asked: a hundred viewers ask the same."""

    def __init__(self, entries: int) -> None:
        self._entries = entries
        self._known: OrderedDict[tuple[object, ...], Future[bytes]] = OrderedDict()
        """Also those that somebody makes at this moment."""
        self._lock = threading.Lock()

    def get(self, key: tuple[object, ...], make: Callable[[], bytes]) -> bytes:
        """Made by the first who asks, while all others who ask the same wait for it."""
        with self._lock:
            answer = self._known.get(key)
            is_first = answer is None
            if answer is None:
                answer = self._known[key] = Future()
            self._known.move_to_end(key)
            while len(self._known) > self._entries:
                self._known.popitem(last=False)
        if is_first:
            self._make(key, answer, make)
        return answer.result(MAKE_DEADLINE_S)

    def _make(
        self, key: tuple[object, ...], answer: Future[bytes], make: Callable[[], bytes]
    ) -> None:
        try:
            answer.set_result(make())
        except BaseException as error:
            with self._lock:
                # Whoever asks later tries anew.
                if self._known.get(key) is answer:
                    del self._known[key]
            answer.set_exception(error)
