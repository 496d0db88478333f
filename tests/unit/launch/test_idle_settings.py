from __future__ import annotations

import pytest

from common.config import (
    ActorSettings,
    AdaptiveSettings,
    ReplaySettings,
    ScriptSettings,
    Settings,
    ShapingSettings,
)
from launch.idle_settings import idle_settings, unused_on_resume

SEQUENCE = "RIGHT:8"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            Settings(scripts=ScriptSettings(scripted_sequence=SEQUENCE, scripted_forward_frames=8)),
            "--scripted-forward-frames is not used",
        ),
        (Settings(scripts=ScriptSettings(forward_action_id=1)), "the forward action is not used"),
        (Settings(scripts=ScriptSettings(probe_forward_actions=8)), "the forward action is not"),
        (Settings(shaping=ShapingSettings(enable_ram_x_parse=True)), "shapes nothing"),
        (
            Settings(
                shaping=ShapingSettings(reward_distance_weight=0.5),
                adaptive=AdaptiveSettings(adaptive=True),
            ),
            "the run begins with 0.2",
        ),
        (
            Settings(
                actor=ActorSettings(actors=3, min_actors=1), replay=ReplaySettings(replay_shards=2)
            ),
            "replay_server-1 stays empty",
        ),
    ],
)
def test_what_changes_nothing_is_told(settings: Settings, words: str) -> None:
    (line,) = idle_settings(settings)

    assert words in line


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings(scripts=ScriptSettings(forward_action_id=1, scripted_forward_frames=8)),
        Settings(scripts=ScriptSettings(probe_forward_actions=8, auto_bootstrap_threshold=5)),
        Settings(scripts=ScriptSettings(scripted_sequence=SEQUENCE)),
        Settings(shaping=ShapingSettings(enable_ram_x_parse=True, reward_distance_weight=0.1)),
        Settings(adaptive=AdaptiveSettings(adaptive=True)),
        Settings(replay=ReplaySettings(replay_shards=2)),
    ],
)
def test_what_is_used_is_not_spoken_of(settings: Settings) -> None:
    assert list(idle_settings(settings)) == []


def test_a_weight_that_a_checkpoint_overrules_is_told() -> None:
    adaptive = Settings(adaptive=AdaptiveSettings(adaptive=True))

    assert "not used" in unused_on_resume("reward_distance_weight", adaptive)
    assert unused_on_resume("reward_distance_weight", Settings()) == ""
    assert unused_on_resume("actors", adaptive) == ""
