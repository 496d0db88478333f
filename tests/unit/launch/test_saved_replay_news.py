from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from common.config import Settings
from common.resume import ResumePoint
from common.run_paths import RunPaths
from launch.saved_replay_news import replay_news
from replay_server.cut_files import CutFolder
from tests.checkpoint_factory import flip_byte
from tests.cut_factory import cut_of, fill, make_buffer
from tests.run_factory import corridor_settings

EMPTY = "WARNING: there is no saved replay for it: the buffer begins empty"


class Scene:
    """A run with saved replays at 10 and 20 agent steps that goes on from 20."""

    def __init__(self, folder: Path) -> None:
        self.settings: Settings = corridor_settings(folder, {"replay": {"checkpoint_replay": True}})
        self.paths = RunPaths.of(self.settings.run)
        buffer = make_buffer()
        writer = CutFolder(self.paths.replay, buffer.storage)
        for number in (10, 20):
            fill(buffer, range(number, number + 2))
            writer.write(cut_of(buffer, number))

    def news(self, name: str = "00000000020", changed: tuple[str, ...] = ()) -> list[str]:
        path = self.paths.checkpoints / name
        point = ResumePoint(path=path, agent_steps=int(name), source="numbered")
        return list(replay_news(self.settings, self.paths, point, changed))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_the_replay_of_the_checkpoint_is_named(scene: Scene) -> None:
    assert scene.news() == ["with the replay that was saved at 20 agent steps"]
    assert scene.news("00000000019") == ["with the replay that was saved at 10 agent steps"]


def test_damage_is_told_before_anybody_wonders(scene: Scene) -> None:
    flip_byte(scene.paths.replay / "cuts" / "00000000020" / "state.json", 30)

    passed_over, taken = scene.news()

    assert passed_over.startswith("WARNING: passed over a saved replay: ")
    assert taken == "with the replay that was saved at 10 agent steps"


def test_every_server_is_told_of(scene: Scene) -> None:
    replay = replace(scene.settings.replay, replay_shards=2)
    scene.settings = replace(scene.settings, replay=replay)
    scene.paths.replay.rename(scene.paths.replay_of(0, 2))

    assert scene.news() == [
        "with the replay that was saved at 20 agent steps (replay_server-0)",
        f"{EMPTY} (replay_server-1)",
    ]


def test_an_empty_buffer_is_told(scene: Scene) -> None:
    assert scene.news("00000000009") == [EMPTY]


def test_settings_that_do_not_fit_are_named(scene: Scene) -> None:
    (line,) = scene.news(changed=("learning_rate", "capacity"))

    assert "does not fit capacity" in line


def test_the_checkpoint_of_another_run_has_no_replay_here(scene: Scene, tmp_path: Path) -> None:
    point = ResumePoint(path=tmp_path / "00000000020", agent_steps=20, source="explicit")

    assert list(replay_news(scene.settings, scene.paths, point, ())) == [EMPTY]


def test_a_run_that_saves_none_says_nothing(scene: Scene) -> None:
    off = replace(scene.settings.replay, checkpoint_replay=False)
    scene.settings = replace(scene.settings, replay=off)

    assert scene.news() == []
