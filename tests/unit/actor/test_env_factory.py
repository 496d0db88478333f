from __future__ import annotations

import pytest

from actor.env.actions import action_bytes, action_labels
from actor.env.corridor import CorridorFaults
from actor.env.factory import make_env, prepare_env
from common.config import EnvSettings
from common.errors import EnvironmentFailed


def test_the_corridor_has_the_size_and_stack_asked_for() -> None:
    env = make_env(EnvSettings(game="corridor", size=36, stack=2))

    observation, _ = env.reset(seed=1)

    assert observation.shape == (env.stack, env.height, env.width) == (2, 36, 36)


def test_the_corridor_takes_faults() -> None:
    settings = EnvSettings(game="corridor", size=16)
    env = make_env(settings, faults=CorridorFaults(raise_at_agent_step=1))
    env.reset()

    with pytest.raises(EnvironmentFailed, match="told to fail"):
        env.step(0)


def test_preparing_loads_the_core_that_will_play(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr("actor.env.core_choice.core_class", loaded.append)

    prepare_env(EnvSettings(core="native"))
    prepare_env(EnvSettings(game="corridor"))

    assert loaded == ["native"]


@pytest.mark.integration
def test_mario_is_built_with_every_setting() -> None:
    settings = EnvSettings(
        stage="2-1",
        core="native",
        actions="complex",
        size=42,
        stack=2,
        noop_max=5,
        frame_skip=2,
        flag_bonus=3.0,
    )
    prepare_env(settings)

    env = make_env(settings)

    assert getattr(env, "settings", None) == settings
    assert (env.num_actions, env.height, env.width, env.stack) == (12, 42, 42, 2)
    env.close()


def test_actions_have_bytes_and_labels_in_the_same_order() -> None:
    assert action_bytes("right_only") == (0, 0x80, 0x81, 0x82, 0x83)
    assert action_labels("right_only") == ("NOOP", "right", "right+A", "right+B", "right+A+B")
