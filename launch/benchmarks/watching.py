"""The benchmark `watching`: what looking at a run costs it.

One run in which all ways to look take turns, since runs differ by more than looking costs. Every
turn lies between two in which there is no control room, and is compared with these two alone.
"""

from __future__ import annotations

import io
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain

import psutil
from rich.console import Console

from common.errors import BenchmarkFailed, ConfigError
from common.run_paths import RunPaths
from launch.benchmarks.browser import OpenBrowser, grown_s, missing_browser, opened_browser
from launch.benchmarks.measure import Effort, Result, Row, against_first, figure
from launch.benchmarks.runs import (
    START_DEADLINE_S,
    Lines,
    count_updates,
    launched,
    number,
    read_figures,
)
from launch.benchmarks.scene import Scene
from launch.benchmarks.viewer import Viewer, connect, get, opened
from launch.benchmarks.watched import Seen, due, seen_rows, shortfalls
from launch.room_process import require_extra, room_beside

ALONE = "no control room"
COUNTERS = {"agent steps": "actors", "updates": "learner"}
"""What is counted, and whose heartbeats count it."""
SWITCH_S = 10.0
"""More than it takes to start or end a control room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How a run is looked at during a turn."""

    viewers: int = 0
    live: tuple[str, ...] = ()
    """Actors in the live view of the first viewer."""
    browser: str = ""
    """The actor that a real browser shows."""
    every_rounds: int = 1
    """It has a turn in the first of so many."""


LOOKS: Mapping[str, Look] = {
    "nobody looks": Look(),
    "one viewer, one actor live": Look(viewers=1, live=("actor-0",)),
    "100 viewers": Look(viewers=100, every_rounds=2),
    "one browser, one actor live": Look(browser="actor-0", every_rounds=3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPlan:
    words: tuple[str, ...] = ("--preset", "laptop")
    """Flags of the run."""
    looks: Mapping[str, Look] = field(default_factory=lambda: LOOKS)
    rounds: int = 8
    seconds: float = 30.0
    """Of a turn: blocks of all environments fill together, so that short ones swing."""
    warm_up_s: float = 0.0
    """After the first update, in which the actors have run ahead of the learner."""
    settle_s: float = 2.0
    """Before each turn, so that starting a control room is not in it."""

    @property
    def order(self) -> list[str]:
        """Whose turn it is, one after the other."""
        return [
            name
            for number in range(self.rounds)
            for name, look in self.looks.items()
            if number % look.every_rounds == 0
        ]

    @property
    def longest_minutes(self) -> float:
        turns = 2 * len(self.order) + 1
        start_s = START_DEADLINE_S + self.warm_up_s
        return (start_s + turns * (self.seconds + self.settle_s + SWITCH_S)) / 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What was seen in one."""

    look: str
    rates: Mapping[str, float]
    """Per second, by counter."""
    room_cores: float = 0.0
    """Processor time of the control room per second."""
    room_mb: float = 0.0
    viewer_cores: float = 0.0
    """The same of this process: its viewers are threads on the cores of the run."""
    browser_cores: float | None = None
    """The same of a browser, where there is one."""
    seen: Seen | None = None
    due: Seen | None = None
    """What its viewers should have got to see."""
    """By a viewer per second, where there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Onlookers:
    """The control room of a turn and who looks; none of them in one without."""

    room: psutil.Process | None = None
    viewers: Sequence[Viewer] = ()
    browser: OpenBrowser | None = None

    @property
    def errors(self) -> list[str]:
        told = [error for viewer in self.viewers for error in viewer.errors]
        return told + (self.browser.errors if self.browser else [])


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Processor seconds so far of all who have to do with looking."""

    room_s: float
    viewers_s: float
    browser_s: Mapping[int, float]

    @classmethod
    def of(cls, onlookers: Onlookers) -> Work:
        browser = onlookers.browser
        return cls(
            room_s=_worked_s(onlookers.room),
            viewers_s=time.process_time(),
            browser_s=browser.worked_s() if browser else {},
        )


def run(effort: Effort) -> Result:
    core = effort.core_name()
    looks, notes = LOOKS, tuple[str, ...]()
    try:
        require_extra()
    except ConfigError as error:
        looks, notes = {}, (f"looking is not measured: {error}",)
    if looks and (note := missing_browser()):
        looks, notes = {name: look for name, look in looks.items() if not look.browser}, (note,)
    plan = WatchPlan(
        words=(
            *("--preset", "laptop", "--core", core, "--evaluators", "0"),
            *("--learning-starts", "1000", "--metrics-interval-s", "0.5"),
        ),
        looks=looks,
        rounds=effort.turns(8, 1),
        seconds=effort.seconds(30.0, 3.0),
        warm_up_s=effort.seconds(30.0, 0.0),
    )
    turns = take_turns(plan)
    thin = thin_looks(turns)
    return Result(rows_of(turns), (*notes, *thin), failed=bool(thin))


def take_turns(plan: WatchPlan) -> list[Turn]:
    """Without a control room, with one, without, with another kind of look, and so on."""
    order = list(chain(*((ALONE, look) for look in plan.order)))
    with launched(plan.words, plan.longest_minutes) as scene:
        paths = scene.paths
        scene.wait_until("the first update", lambda: count_updates(paths) > 0, START_DEADLINE_S)
        _pause(scene, plan.warm_up_s)
        return [take_turn(scene, plan, name) for name in (*order, ALONE)]


def take_turn(scene: Scene, plan: WatchPlan, name: str) -> Turn:
    with looked_at(scene.paths, plan.looks.get(name)) as onlookers:
        _pause(scene, plan.settle_s)
        began_at, before, seen_before = time.time(), Work.of(onlookers), Seen.of(onlookers.viewers)
        _pause(scene, plan.seconds)
        elapsed_s, after = time.time() - began_at, Work.of(onlookers)
        seen = Seen.of(onlookers.viewers).since(seen_before, onlookers.viewers, elapsed_s)
        figures = read_figures(scene.paths, began_at, elapsed_s)
        if errors := onlookers.errors:
            raise BenchmarkFailed(f"{name}: {len(errors)} errors, the first: {errors[0]}")
        return Turn(
            look=name,
            seen=seen if onlookers.viewers else None,
            due=due(onlookers.viewers),
            rates={
                counter: progress_per_s(figures.beats[part]) for counter, part in COUNTERS.items()
            },
            room_cores=(after.room_s - before.room_s) / elapsed_s,
            viewer_cores=(after.viewers_s - before.viewers_s) / elapsed_s,
            browser_cores=grown_s(before.browser_s, after.browser_s) / elapsed_s
            if onlookers.browser
            else None,
            room_mb=onlookers.room.memory_info().rss / 2**20 if onlookers.room else 0.0,
        )


@contextmanager
def looked_at(paths: RunPaths, look: Look | None) -> Iterator[Onlookers]:
    """The control room as `launch/local.py --dashboard` starts it, and who looks."""
    if look is None:
        yield Onlookers()
        return
    with ExitStack() as stack:
        place = stack.enter_context(room_beside(paths, Console(file=io.StringIO())))
        connection = connect(place.port)
        get(connection, "/api/runs")
        connection.close()
        peers = [look.live, *[()] * (look.viewers - 1)][: look.viewers]
        viewers = [Viewer(place.port, paths.root.name, live) for live in peers]
        stack.enter_context(opened(viewers))
        shown = opened_browser(place.port, paths, look.browser) if look.browser else None
        browser = stack.enter_context(shown) if shown else None
        yield Onlookers(room=psutil.Process(place.pid), viewers=viewers, browser=browser)


def _pause(scene: Scene, seconds: float) -> None:
    """Sleeps, and notices a run that has ended."""
    end_s = time.monotonic() + seconds
    while (left_s := end_s - time.monotonic()) > 0:
        scene.check()
        time.sleep(min(left_s, 0.5))


def _worked_s(room: psutil.Process | None) -> float:
    if room is None:
        return 0.0
    times = room.cpu_times()
    return float(times.user + times.system)


def progress_per_s(beats: Lines) -> float:
    """Of all processes of a part, each from its first heartbeat to its last."""
    by_process: dict[object, list[Mapping[str, object]]] = defaultdict(list)
    for beat in beats:
        by_process[beat.get("index")].append(beat)
    if not by_process or min(map(len, by_process.values())) < 2:  # noqa: PLR2004 - a rate needs two
        raise BenchmarkFailed("a process was silent for a whole turn; take longer turns")
    return sum(_between(told[0], told[-1]) for told in by_process.values())


def _between(first: Mapping[str, object], last: Mapping[str, object]) -> float:
    elapsed_s = number(last, "time") - number(first, "time")
    return (number(last, "progress") - number(first, "progress")) / max(elapsed_s, 1e-9)


def rows_of(turns: Sequence[Turn]) -> list[Row]:
    """Rates by look, each turn against its neighbours, and what the control room itself used."""
    names = list(dict.fromkeys(turn.look for turn in turns))
    looks = [name for name in names if name != ALONE]
    rates = [rate_row(turns, name, counter) for counter in COUNTERS for name in names]
    rows = against_first(rates)
    rows += [ratio_row(turns, name, counter) for counter in COUNTERS for name in looks]
    for name in looks:
        rows += used_rows(name, [turn for turn in turns if turn.look == name])
    return rows


def used_rows(look: str, turns: Sequence[Turn]) -> list[Row]:
    """The viewers share the machine with the run: what they use is in what looking costs here."""
    used = {
        "room": [turn.room_cores for turn in turns],
        "viewers": [turn.viewer_cores for turn in turns],
        "browser": [turn.browser_cores for turn in turns if turn.browser_cores is not None],
    }
    rows = [
        figure(f"processor of the {who}: {look}", cores, "core")
        for who, cores in used.items()
        if cores
    ]
    memory = [turn.room_mb for turn in turns]
    seen = seen_rows(look, [turn.seen for turn in turns if turn.seen is not None])
    return [*rows, *seen, figure(f"memory of the room: {look}", memory, "MB")]


def thin_looks(turns: Sequence[Turn]) -> list[str]:
    """Looks whose viewers hardly saw anything, told in words."""
    seen: dict[str, list[Seen]] = defaultdict(list)
    wanted: dict[str, Seen] = {}
    for turn in turns:
        if turn.seen is not None and turn.due is not None:
            seen[turn.look].append(turn.seen)
            wanted[turn.look] = turn.due
    return [
        words for look, least in wanted.items() for words in shortfalls(look, seen[look], least)
    ]


def rate_row(turns: Sequence[Turn], look: str, counter: str) -> Row:
    rates = [turn.rates[counter] for turn in turns if turn.look == look]
    return figure(f"{counter}: {look}", rates, f"{counter.removesuffix('s')}/s", group=counter)


def ratio_row(turns: Sequence[Turn], look: str, counter: str) -> Row:
    """The share of the rate that is left, turn by turn, where the machine's moods cancel out."""
    shares = [
        turn.rates[counter] / statistics.mean((before.rates[counter], after.rates[counter]))
        for before, turn, after in zip(turns, turns[1:], turns[2:], strict=False)
        if turn.look == look
    ]
    return figure(f"share of {counter}: {look}", shares, "share")
