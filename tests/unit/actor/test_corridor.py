from __future__ import annotations

import json
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from actor.env.corridor import (
    FAULTS_VARIABLE,
    FLAG_CELL,
    NUM_ACTIONS,
    OPTIMAL_AGENT_STEPS,
    OPTIMAL_RETURN,
    PITS,
    WALK,
    CorridorEnv,
    CorridorFaults,
    draw,
    next_cell,
    step_reward,
)
from common.errors import ConfigError, EnvironmentFailed

_ROOT = Path(__file__).parents[3]
_OPTIMAL_ACTIONS = (2, 2, 1, 2, 1, 2, 1, 2, 2)


def _play(actions: tuple[int, ...], *, max_steps: int = 200) -> tuple[float, bool, int]:
    """Repeat the actions until the episode ends: return, flag, agent steps."""
    env = CorridorEnv()
    env.reset(seed=3)
    total = 0.0
    for index in range(max_steps):
        _, reward, terminated, truncated, info = env.step(actions[index % len(actions)])
        total += reward
        if terminated or truncated:
            return total, bool(info["flag_get"]), index + 1
    raise AssertionError("the episode did not end")


def test_the_optimal_return_is_what_value_iteration_finds() -> None:
    values = [0.0] * (FLAG_CELL + 1)
    for cell in reversed(range(FLAG_CELL)):
        if cell not in PITS:
            moves = [next_cell(cell, action) for action in range(1, NUM_ACTIONS)]
            values[cell] = max(step_reward(cell, move) + values[move] for move in moves)

    assert values[0] == OPTIMAL_RETURN == 2.3125


def test_the_optimal_actions_earn_the_optimal_return() -> None:
    assert _play(_OPTIMAL_ACTIONS) == (OPTIMAL_RETURN, True, OPTIMAL_AGENT_STEPS)


@pytest.mark.parametrize(
    "actions", [cycle for length in (1, 2, 3) for cycle in product(range(3), repeat=length)]
)
def test_no_constant_action_and_no_short_cycle_arrives(actions: tuple[int, ...]) -> None:
    _, has_flag, _ = _play(actions)

    assert not has_flag


def test_random_play_arrives_less_than_once_in_a_hundred() -> None:
    chance = [0.0] * FLAG_CELL + [1.0]
    for cell in reversed(range(FLAG_CELL)):
        if cell not in PITS:
            # Staying only delays, so two moves share the probability.
            chance[cell] = (chance[next_cell(cell, 1)] + chance[next_cell(cell, 2)]) / 2

    assert 0.0 < chance[0] < 0.01


def test_standing_still_is_truncated_not_terminated() -> None:
    env = CorridorEnv()
    env.reset()

    steps = [env.step(0) for _ in range(64)]

    assert [(s[2], s[3]) for s in steps] == [(False, False)] * 63 + [(False, True)]
    with pytest.raises(EnvironmentFailed, match="call reset"):
        env.step(0)


@pytest.mark.parametrize("size", [16, 36, 84])
def test_every_cell_looks_different(size: int) -> None:
    pictures = {draw(cell, size).tobytes() for cell in range(FLAG_CELL + 1)}

    assert len(pictures) == FLAG_CELL + 1


def test_observations_are_stacks_of_frames() -> None:
    env = CorridorEnv(size=20, stack=3)
    first, _ = env.reset()
    frame_before = env.frame

    observation, *_ = env.step(1)

    assert observation.shape == (3, 20, 20)
    assert observation.dtype == np.uint8
    np.testing.assert_array_equal(observation[:2], first[1:])
    np.testing.assert_array_equal(observation[2], env.frame)
    assert not np.array_equal(frame_before, env.frame)


def test_a_size_below_the_corridor_is_refused() -> None:
    with pytest.raises(ConfigError, match="16"):
        CorridorEnv(size=15)


def test_it_raises_when_told_to() -> None:
    env = CorridorEnv(faults=CorridorFaults(raise_at_agent_step=2))
    env.reset()
    env.step(0)

    with pytest.raises(EnvironmentFailed, match="agent step 2"):
        env.step(0)


@pytest.mark.integration
def test_it_crashes_the_process_when_told_to() -> None:
    program = (
        "from actor.env.corridor import CorridorEnv, CorridorFaults\n"
        "env = CorridorEnv(faults=CorridorFaults(segfault_at_agent_step=1))\n"
        "env.reset(); env.step(0)\n"
    )

    ended = subprocess.run([sys.executable, "-c", program], cwd=_ROOT, timeout=30, check=False)

    assert ended.returncode == -signal.SIGSEGV


@pytest.mark.integration
def test_it_hangs_when_told_to() -> None:
    program = (
        "from actor.env.corridor import CorridorEnv, CorridorFaults\n"
        "env = CorridorEnv(faults=CorridorFaults(hang_at_agent_step=1))\n"
        "env.reset(); print('ready', flush=True); env.step(0)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=_ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"

        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)

        process.kill()


def test_faults_of_a_process_come_from_its_environment_and_happen_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    faults = {"raise_at_agent_step": 1, "once_file": str(tmp_path / "once")}
    monkeypatch.setenv(FAULTS_VARIABLE, json.dumps(faults))
    first, second = CorridorEnv(), CorridorEnv()
    first.reset()
    second.reset()

    with pytest.raises(EnvironmentFailed, match="told to fail"):
        first.step(WALK)

    second.step(WALK)


@pytest.mark.parametrize("text", ["no json", '{"no_such_fault": 1}', "[1]"])
def test_faults_that_do_not_exist_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FAULTS_VARIABLE, text)

    with pytest.raises(ConfigError, match=FAULTS_VARIABLE):
        CorridorEnv()
