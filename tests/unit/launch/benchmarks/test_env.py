from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from common.errors import ConfigError, CoreUnavailable
from launch.benchmarks.env import Script, _available_cores, play, record_script


class EpisodesOfThree:
    """An environment whose every third agent step is the last; it refuses to be played on."""

    def __init__(self) -> None:
        self.action_space = SimpleNamespace(n=5)
        self.left = 0

    def reset(self) -> None:
        self.left = 3

    def step(self, action: int) -> tuple[None, float, bool, bool, dict[str, Any]]:
        assert self.left > 0
        assert 0 <= action < self.action_space.n
        self.left -= 1
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
