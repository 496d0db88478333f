"""What the preset `bootstrap` says of its scripted start, on the real game."""

from __future__ import annotations

import pytest

from actor.env.mario_env import MarioEnv
from common.button_script import Hold, parse_script
from launch.options import parse_local

pytestmark = pytest.mark.integration

STARTS = range(31)
FRAME_SKIP = 4
RUN_RIGHT = 3


def play(env: MarioEnv, holds: tuple[Hold, ...], noop_frames: int) -> tuple[bool, int]:
    """Whether Mario lives a second after the last hold, and the x at its end."""
    env.reset(options={"noop_frames": noop_frames})
    x = 0
    for hold in holds:
        for _ in range(hold.frames // FRAME_SKIP):
            *_, has_ended, _, info = env.step(hold.action)
            x = int(info["x_pos"])
            if has_ended:
                return False, x
    return not any(env.step(0)[2] for _ in range(15)), x


def test_its_script_survives_every_start_where_running_straight_on_never_does() -> None:
    settings = parse_local(["--preset", "bootstrap"]).settings
    holds = parse_script(settings.scripts.scripted_sequence, settings.env.actions)
    env = MarioEnv(core="native", stage="1-1")

    scripted = [play(env, holds, start) for start in STARTS]
    straight = [play(env, (Hold(RUN_RIGHT, 180),), start) for start in STARTS]
    env.close()

    assert all(hold.frames % FRAME_SKIP == 0 for hold in holds)
    assert [survives for survives, _ in scripted] == [True] * len(STARTS)
    assert min(x for _, x in scripted) >= 530
    assert not any(survives for survives, _ in straight)
