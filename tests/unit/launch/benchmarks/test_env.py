from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from actor.env.nes_core import NesPyCore
from common.errors import ConfigError, CoreUnavailable
from launch.benchmarks.env import (
    Script,
    _agent_play,
    _available_cores,
    _core_play,
    play,
    record_script,
)
from launch.benchmarks.measure import Contender, compare


class EpisodesOfThree:
    """An environment whose every third agent step is the last; it refuses to be played on."""

    def __init__(self) -> None:
        self.action_space = SimpleNamespace(n=5)
        self.left = 0
        self.played = 0

    def reset(self) -> None:
        self.left = 3

    def step(self, action: int) -> tuple[None, float, bool, bool, dict[str, Any]]:
        assert self.left > 0
        assert 0 <= action < self.action_space.n
        self.left -= 1
        self.played += 1
        return None, 0.0, self.left == 0, False, {}


def test_a_script_knows_where_episodes_begin() -> None:
    script = record_script(EpisodesOfThree(), agent_steps=7, seed=1)

    assert script.begins == (True, False, False, True, False, False, True)
    assert len(set(script.actions)) > 1


def test_a_script_depends_on_its_seed_alone() -> None:
    first, again = (record_script(EpisodesOfThree(), agent_steps=50, seed=1) for _ in range(2))

    assert first == again != record_script(EpisodesOfThree(), agent_steps=50, seed=2)


def test_a_script_is_played_from_its_beginning_every_time() -> None:
    script = Script(actions=(10, 11, 12), begins=(True, False, True))
    played: list[int | str] = []

    for _ in range(2):
        play(script, lambda: played.append("begin"), played.append)

    assert played == ["begin", 10, 11, "begin", 12] * 2


def test_a_core_that_is_not_here_becomes_a_note() -> None:
    def make_core(name: str) -> str:
        if name == "native":
            raise CoreUnavailable("no compiler")
        return name.upper()

    available, notes = _available_cores(make_core)

    assert available == {"nes_py": "NES_PY", "fceumm": "FCEUMM"}
    assert notes == ["native is not measured: no compiler"]


def test_a_core_that_is_broken_is_no_note() -> None:
    def make_core(name: str) -> str:
        raise ConfigError(f"{name} is broken")

    with pytest.raises(ConfigError, match="nes_py is broken"):
        _available_cores(make_core)


class CountingCore(NesPyCore):
    frames = 0
    pictures = 0

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        self.frames += frames
        super().step(buttons, frames, look=look)

    def write_gray(self, out: NDArray[np.uint8], *, crop_top_pixels: int = 0) -> None:
        self.pictures += 1
        super().write_gray(out, crop_top_pixels=crop_top_pixels)


@pytest.mark.parametrize(("look", "pictures"), [(False, 0), (True, 3)])
def test_a_turn_of_a_core_plays_the_frames_that_its_row_counts(look: bool, pictures: int) -> None:
    core = CountingCore()
    script = Script(actions=(1, 0, 2), begins=(True, False, False))
    contender = _core_play("nes_py", core, script, look=look)
    frames_before = core.frames

    contender.work()
    core.close()

    assert core.frames - frames_before == contender.units_per_turn == 12
    assert core.pictures == pictures


def test_a_turn_of_an_environment_plays_the_agent_steps_that_its_row_counts() -> None:
    env = EpisodesOfThree()
    contender = _agent_play("nes_py", env, record_script(env, agent_steps=7, seed=1))
    env.played = 0

    contender.work()

    assert env.played == contender.units_per_turn == 7


def test_an_agent_step_is_compared_with_the_frames_that_it_stands_for() -> None:
    env = EpisodesOfThree()
    agent = _agent_play("nes_py", env, record_script(env, agent_steps=7, seed=1))
    raw = Contender(
        work=lambda: None, unit="frame", units_per_turn=28, is_rate=True, group="playing"
    )

    rows = compare({"raw": raw, "agent": agent}, {"raw": [1.0], "agent": [2.0]})

    assert [row.unit for row in rows] == ["frame/s", "agent step/s"]
    assert [row.median for row in rows] == [28.0, 3.5]
    assert rows[1].ratio == 0.5
