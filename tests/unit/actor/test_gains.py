from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import cast

import pytest

from actor.env.corridor import CorridorEnv
from actor.env.interface import EnvProtocol, Info
from actor.gains import GainWatch, GroundSource, InfoGround, RamGround, RamX

WHERE = RamX(high_address=0x6D, low_address=0x86, frame_skip=4)
START: Info = {"distance": 0, "score": 0}


class RamScript:
    """A console whose x follows a script; None where it cannot be read."""

    def __init__(self, xs: Sequence[int | None]) -> None:
        self._xs = list(xs)

    def read_ram(self, address: int) -> int:
        # The page is read first; the game goes on with the low byte, or with a failure.
        is_page = address == WHERE.high_address and self._xs[0] is not None
        x = self._xs[0] if is_page else self._xs.pop(0)
        if x is None:
            raise IndexError(address)
        return x // 0x100 if is_page else x % 0x100


class Reading:
    """Gives what a test wants to have been read."""

    def __init__(self, gains: Sequence[int | None]) -> None:
        self._gains = list(gains)

    def begin(self, info: Info) -> None:
        """Nothing to compare with."""

    def gained(self, info: Info) -> int | None:
        del info
        return self._gains.pop(0)


def gains_along(source: GroundSource, distances: Sequence[int]) -> list[int | None]:
    return [source.gained({"distance": distance}) for distance in distances]


def test_the_start_of_an_episode_is_no_gain_and_ground_counts_once() -> None:
    source = InfoGround()
    source.begin({"distance": 40})

    assert gains_along(source, [40, 52, 52, 60]) == [0, 12, 0, 8]
    source.begin(START)
    assert gains_along(source, [3]) == [3]


def ram_gains(xs: Sequence[int | None]) -> list[int | None]:
    """Of the agent steps after the first x."""
    source = RamGround(cast("EnvProtocol", RamScript(xs)), WHERE)
    source.begin(START)
    return [source.gained(START) for _ in xs[1:]]


@pytest.mark.parametrize(
    ("case", "xs", "gains"),
    [
        ("the first step does not earn its x", [1_040, 1_046], [6]),
        ("back and forth", [40, 50, 44, 50, 53], [10, 0, 0, 3]),
        ("across a page", [250, 260], [10]),
        ("a pipe forward, then on", [900, 2_600, 2_608], [0, 8]),
        ("a pipe back, then on", [900, 30, 40], [0, 0]),
        ("a loop-back, then the same ground again", [1_500, 476, 490, 1_500, 1_509], [0, 0, 0, 9]),
        ("a short pipe", [900, 921, 922], [0, 1]),
        ("the longest walk", [900, 920], [20]),
    ],
)
def test_x_from_ram_is_progress(case: str, xs: list[int], gains: list[int]) -> None:
    assert ram_gains(xs) == gains, case


def test_a_new_episode_begins_anew_with_x_from_ram() -> None:
    source = RamGround(cast("EnvProtocol", RamScript([40, 60, 40, 45])), WHERE)
    source.begin(START)
    first = source.gained(START)
    source.begin(START)

    assert (first, source.gained(START)) == (20, 5)


def test_a_gap_in_reading_earns_nothing_that_is_too_far() -> None:
    assert ram_gains([40, 50, None, 62, None, 100, 104]) == [10, None, 12, None, 0, 4]


def test_an_episode_whose_first_x_is_unknown_does_not_earn_the_second() -> None:
    assert ram_gains([None, 900, 908]) == [0, 8]


def test_an_environment_without_ram_and_an_address_that_is_not_there_are_failures() -> None:
    for env in (CorridorEnv(), RamScript([None, None])):
        source = RamGround(cast("EnvProtocol", env), WHERE)
        source.begin(START)

        assert source.gained(START) is None


def test_points_are_what_the_score_rose_by() -> None:
    watch = GainWatch(InfoGround())
    watch.begin({"distance": 0, "score": 300})

    scores = [watch.note({"distance": 0, "score": score}).score for score in (300, 500, 0, 100)]

    assert scores == [0, 200, 0, 100]


def test_idle_time_runs_over_episodes_until_there_is_new_ground() -> None:
    watch = GainWatch(Reading([0, 0, 0, 4, 0]))
    watch.begin(START)
    seen = []
    for step in range(5):
        if step == 2:
            watch.begin(START)
        watch.note(START)
        seen.append(watch.idle_agent_steps)

    assert seen == [1, 2, 3, 0, 1]


def test_an_unknown_x_is_neither_ground_nor_idleness() -> None:
    watch = GainWatch(Reading([0, None, None, 0]))
    watch.begin(START)
    gains = [watch.note(START).dx_pixels for _ in range(4)]

    assert gains == [0, None, None, 0]
    assert watch.idle_agent_steps == 2
    assert watch.failures == 2


def test_after_failures_in_a_row_nobody_reads_any_more_and_it_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = GainWatch(Reading([None, 5, None, None, None, 7]), env_index=3, fail_limit=3)
    watch.begin(START)

    with caplog.at_level(logging.WARNING):
        gains = [watch.note(START).dx_pixels for _ in range(9)]

    assert gains == [None, 5] + 7 * [None]
    assert watch.failures == 4
    (record,) = caplog.records
    assert "x cannot be read" in record.getMessage()
    assert record.__dict__["env"] == 3
