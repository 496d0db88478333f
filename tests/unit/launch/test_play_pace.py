from __future__ import annotations

from launch.play_terminal import Pace
from tests.fake_clock import FakeClock


def test_agent_steps_come_at_the_pace_of_the_game() -> None:
    clock = FakeClock()
    pace = Pace(agent_step_s=0.05, clock=clock)
    waits = []
    for _ in range(4):
        waits.append(round(pace.wait_s(), 6))
        clock.advance(waits[-1] + 0.01)  # drawing takes a while, and the pace makes up for it

    assert waits == [0.0, 0.04, 0.04, 0.04]


def test_a_short_delay_is_caught_up_and_a_long_one_is_not() -> None:
    clock = FakeClock()
    pace = Pace(agent_step_s=0.05, clock=clock)
    pace.wait_s()
    clock.advance(0.12)
    late = [pace.wait_s(), pace.wait_s(), pace.wait_s()]
    clock.advance(10.0)

    assert late[:2] == [0.0, 0.0]
    assert late[2] > 0.0
    assert pace.wait_s() == 0.0
    assert pace.wait_s() > 0.0
