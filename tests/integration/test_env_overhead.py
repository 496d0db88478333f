"""What an agent step costs beyond its four emulator frames."""

from __future__ import annotations

import time

import pytest

from actor.env.actions import action_bytes
from actor.env.mario_env import MarioEnv
from actor.env.nes_core import NesPyCore
from actor.env.stage_game import StageGame

pytestmark = pytest.mark.integration

_BUDGET = 1.05
_AGENT_STEPS = 2
_RUN_JUMP = 4


def _cpu_s_of_env(env: MarioEnv) -> float:
    env.reset(seed=1)
    began = time.thread_time()
    for _ in range(_AGENT_STEPS):
        env.step(_RUN_JUMP)
    return time.thread_time() - began


def _cpu_s_of_core(core: NesPyCore) -> float:
    core.load_state()
    buttons = action_bytes("simple")[_RUN_JUMP]
    began = time.thread_time()
    for _ in range(_AGENT_STEPS):
        core.step(buttons, 4)
    return time.thread_time() - began


@pytest.mark.slow
def test_an_agent_step_costs_at_most_five_percent_more_than_its_frames() -> None:
    env, core = MarioEnv(), NesPyCore()
    StageGame(core, "1-1")

    # The same frames in turns. The least time is what the code costs; what comes on top of it is
    # the doing of other processes.
    times_s = [(_cpu_s_of_env(env), _cpu_s_of_core(core)) for _ in range(200)]

    env.close()
    core.close()
    env_s, core_s = (min(column) for column in zip(*times_s, strict=True))
    assert env_s / core_s <= _BUDGET
