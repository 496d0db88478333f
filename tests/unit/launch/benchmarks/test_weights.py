"""What the benchmark `weights` makes of the times that its processes tell."""

from __future__ import annotations

import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from common.config import EnvSettings
from common.errors import BenchmarkFailed
from launch.benchmarks import weights
from launch.benchmarks.measure import Row
from launch.benchmarks.subscriber import follow, player
from launch.benchmarks.weights import (
    SPARE_S,
    Source,
    WeightsPlan,
    publish_and_follow,
    rows_of,
)

PUBLISHED = {1: 100.0, 2: 101.0}
BUSY_S = 0.05
ASLEEP_S = 0.15


def told(*uses: tuple[int, float]) -> dict[str, Any]:
    """Of a subscriber that was followed for ten seconds."""
    return {"uses": uses, "processor_s": 0.2, "elapsed_s": 0.6, "seconds": 10.0 + SPARE_S}


def rows(*subscribers: dict[str, Any], serialisations: int = 2) -> dict[str, Row]:
    source = SimpleNamespace(seconds=[0.02, 0.04], serialisations=serialisations)
    return {row.contender: row for row in rows_of(PUBLISHED, subscribers, cast("Source", source))}


def burn() -> None:
    began_s = time.thread_time()
    while time.thread_time() - began_s < BUSY_S:
        pass


class SlowFeed:
    """One version, which takes a while to load and a longer one to wait for a core."""

    def __init__(self, *, has_news: bool = True) -> None:
        self.current = SimpleNamespace(version=7)
        self._has_news = has_news

    def poll(self) -> bool:
        if not self._has_news:
            return False
        self._has_news = False
        burn()
        time.sleep(ASLEEP_S)
        return True


def test_delays_run_from_publishing_to_the_use_by_one_and_by_all() -> None:
    found = rows(told((1, 100.1), (2, 101.3)), told((1, 100.3), (2, 101.1)))

    assert found["publishing one version"].median == pytest.approx(0.03)
    assert found["publish to use, one actor"].median == pytest.approx(0.2)
    assert found["publish to use, all 2 actors"].median == pytest.approx(0.3)
    assert found["publish to use, all 2 actors"].ratio == pytest.approx(10.0)


def test_a_version_that_one_never_used_counts_as_missed() -> None:
    found = rows(told((1, 100.1), (2, 101.9)), told((1, 100.2)))

    assert found["versions that all 2 used"].median == 0.5
    assert found["publish to use, all 2 actors"].median == pytest.approx(0.2)


def test_versions_that_nobody_shares_are_an_error() -> None:
    with pytest.raises(BenchmarkFailed, match="no version reached every subscriber"):
        rows(told((1, 100.1)), told((2, 101.1)))


def test_costs_are_shares_of_the_time_in_which_versions_came() -> None:
    found = rows(told((1, 100.1), (2, 101.1)))

    assert found["share of an actor's time, processor time"].median == pytest.approx(0.02)
    assert found["share of an actor's time, 1 at once by the clock"].median == pytest.approx(0.06)
    assert found["processor time of an actor per version"].median == pytest.approx(0.1)


def test_serialisations_are_counted_per_version() -> None:
    found = rows(told((1, 100.1)), serialisations=6)

    assert found["serialisations per version"].median == 3.0


def test_waiting_for_a_core_is_no_processor_time() -> None:
    refreshed: list[str] = []
    prepared = cast("Any", SimpleNamespace(refresh=lambda: refreshed.append("now")))

    found: dict[str, Any] = follow(SlowFeed(), prepared, 0.3)

    assert [version for version, _ in found["uses"]] == [7]
    assert refreshed == ["now"]
    assert found["elapsed_s"] >= BUSY_S + ASLEEP_S
    assert BUSY_S <= found["processor_s"] < BUSY_S + ASLEEP_S / 2


def test_looks_that_find_nothing_take_processor_time_and_no_loading() -> None:
    feed = SlowFeed(has_news=False)
    looks = iter([True])

    def poll() -> bool:
        if next(looks, False):
            burn()
        return False

    feed.poll = poll  # type: ignore[method-assign] # a look that takes a while

    found: dict[str, Any] = follow(feed, cast("Any", SimpleNamespace()), 0.2)

    assert found["elapsed_s"] == 0.0
    # Clocks of threads are read one after the other.
    assert found["processor_s"] >= 0.9 * BUSY_S


def test_the_processor_time_of_other_threads_belongs_to_the_cost() -> None:
    receiving = threading.Thread(target=burn)

    receiving.start()
    found: dict[str, Any] = follow(SlowFeed(has_news=False), cast("Any", None), 0.4)
    receiving.join()

    assert found["processor_s"] > BUSY_S / 2
    assert found["uses"] == []


def test_an_actor_that_plays_looks_for_weights_between_two_steps() -> None:
    turns: list[str] = []

    def look() -> bool:
        turns.append("look")
        return False

    def step() -> None:
        turns.append("step")
        time.sleep(0.001)

    follow(SimpleNamespace(poll=look), cast("Any", None), 0.05, step)

    assert turns[:4] == ["look", "step"] * 2


def test_playing_goes_on_after_the_end_of_an_episode() -> None:
    seen: list[tuple[int, ...]] = []
    prepared = SimpleNamespace(infer=lambda pixels, _previous: seen.append(tuple(pixels.shape)))
    settings = EnvSettings(game="corridor", size=16)
    step = player(settings, 2, cast("Any", prepared))

    for _ in range(300):
        step()

    assert seen == [(1, settings.stack, 16, 16)] * 300


def test_rows_say_whether_the_subscribers_play(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SimpleNamespace(close=lambda: None, seconds=[0.02], serialisations=2)
    monkeypatch.setattr(
        weights, "open_scene", lambda _settings: nullcontext(SimpleNamespace(settings=None))
    )
    monkeypatch.setattr(weights, "Source", lambda _settings: source)
    monkeypatch.setattr(
        weights,
        "_measure",
        lambda *_: rows_of(PUBLISHED, [told((1, 100.1))], cast("Source", source)),
    )

    idle, playing = (publish_and_follow(WeightsPlan(core=core)).rows for core in ("", "native"))

    assert idle[1].contender == "publish to use, one actor, cores otherwise idle"
    assert playing[1].contender == "publish to use, one actor, playing on native"
    assert playing[1].ratio == pytest.approx(0.1 / 0.02)
    assert {row.group for row in playing} == {"playing on native", ""}
