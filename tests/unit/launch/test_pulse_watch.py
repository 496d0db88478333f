from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from common.pulse import PULSE_INTERVAL_S, PULSE_VARIABLE, Pulse
from launch.patience import Patience, patience_with
from launch.pulse_watch import MAX_LOOK_S, PulseWatch
from tests.fake_clock import FakeClock
from tests.run_factory import corridor_settings


class Line:
    """Both ends of one pipe and the clocks on them."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.watch = PulseWatch(self.clock())
        self.pulse = Pulse(self.watch.writer, self.clock)

    def pass_time(self, seconds: float, step_s: float = 0.5) -> None:
        """As the launcher looks: again and again."""
        for _ in range(round(seconds / step_s)):
            self.clock.advance(step_s)
            self.watch.look(self.clock())


@pytest.fixture
def line() -> Iterator[Line]:
    line = Line()
    yield line
    os.close(line.watch.writer)
    line.watch.close()


def test_silence_grows_until_the_loop_turns(line: Line) -> None:
    line.pass_time(4.0)
    before = line.watch.silent_s
    line.pulse.turn()
    line.watch.look(line.clock())

    assert before == 4.0
    assert line.watch.silent_s == 0.0
    assert line.watch.has_turned


def test_the_deadline_before_the_first_turn_is_another(line: Line) -> None:
    patience = Patience(start_s=8.0, turn_s=3.0)
    line.pass_time(4.0)
    while_starting = line.watch.is_over(patience)
    line.pulse.turn()
    line.pass_time(4.0)

    assert not while_starting
    assert line.watch.is_over(patience)


def test_a_launcher_that_slept_blames_nobody(line: Line) -> None:
    line.clock.advance(3600)
    line.watch.look(line.clock())

    assert line.watch.silent_s == MAX_LOOK_S


def test_a_clock_that_runs_backwards_counts_for_nothing(line: Line) -> None:
    line.pass_time(2.0)
    line.clock.advance(-100)
    line.watch.look(line.clock())

    assert line.watch.silent_s == 2.0


def test_a_loop_that_spins_writes_rarely(line: Line) -> None:
    for _ in range(1000):
        line.pulse.turn()
        line.clock.advance(PULSE_INTERVAL_S / 100)

    assert len(os.read(line.watch.reader, 4096)) == 10


def test_a_launcher_that_does_not_read_never_holds_the_process_up(line: Line) -> None:
    for _ in range(100_000):
        line.pulse.turn()
        line.clock.advance(PULSE_INTERVAL_S)

    line.watch.look(line.clock())
    assert line.watch.has_turned


def test_a_process_without_a_launcher_has_no_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in ("", "no number", "987654"):
        monkeypatch.setenv(PULSE_VARIABLE, number)
        Pulse.from_environment().turn()

        assert PULSE_VARIABLE not in os.environ


def test_deadlines_are_those_of_the_documents(tmp_path: Path) -> None:
    settings = corridor_settings(tmp_path)

    turns = {
        "actor": patience_with("actor", settings).turn_s,
        "replay_server": patience_with("replay_server", settings).turn_s,
        "learner": patience_with("learner", settings).turn_s,
        "evaluator": patience_with("evaluator", settings).turn_s,
    }

    assert turns == {"actor": 10, "replay_server": 30, "learner": 30, "evaluator": 120}


def test_patience_scales_all_deadlines_and_none_means_never(tmp_path: Path) -> None:
    double = corridor_settings(tmp_path, {"run": {"patience": 2.0}})
    never = corridor_settings(tmp_path, {"run": {"patience": 0.0}})

    assert patience_with("actor", double).turn_s == 20
    assert patience_with("actor", never) == Patience()


def test_an_actor_with_many_environments_has_a_second_for_each(tmp_path: Path) -> None:
    many = corridor_settings(tmp_path, {"actor": {"envs_per_actor": 64}})

    assert patience_with("actor", many).turn_s == 64
