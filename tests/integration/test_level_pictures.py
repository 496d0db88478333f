"""Pictures of levels from real screens of the native core."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from actor.env.mario_env import MarioEnv
from actor.env.scenery import STATUS_BAR_PIXELS
from actor.level_atlas import LevelAtlas, read_level_picture
from common.traces import Trace, read_trace
from tests.native.recorded_clears import clear_path

pytestmark = pytest.mark.integration

ENEMY_BROWN = (228, 92, 16)
SKY = (104, 136, 252)


def clear_env(trace: Trace) -> MarioEnv:
    return MarioEnv(
        stage=trace.stage,
        core="native",
        actions=trace.action_set,
        frame_skip=trace.frame_skip,
    )


def draw_level(stage: str, folder: Path) -> None:
    """From a recorded clear."""
    trace = read_trace(clear_path(stage))
    env = clear_env(trace)
    atlas = LevelAtlas(folder)
    env.reset(seed=trace.seed, options={"noop_frames": trace.noop_frames})
    atlas.add(stage, env.screen(), env.scenery())
    for action in trace.actions:
        env.step(action)
        atlas.add(stage, env.screen(), env.scenery())
    env.close()
    atlas.save()


def test_the_first_level_is_drawn_whole_without_mario_and_his_enemies(tmp_path: Path) -> None:
    draw_level("1-1", tmp_path)

    picture = read_level_picture(tmp_path, "1-1")
    assert picture is not None
    assert picture.covered() == [(0, picture.width)]
    assert picture.width > 3_100
    image = picture.image()
    # Between the ground and the first blocks there is only sky, green and enemies; those are gone.
    strip = image[180:208, 300:430]
    assert not (strip[..., :3] == ENEMY_BROWN).all(axis=2).any()
    assert (image[:STATUS_BAR_PIXELS, :, :3] == SKY).all()
    holes = (image[STATUS_BAR_PIXELS:, :, 3] == 0).mean()
    assert holes < 0.005


def test_the_picture_fits_every_screen(tmp_path: Path) -> None:
    """Where the level is visible, a screen shows what the picture has there, but for animation."""
    draw_level("1-1", tmp_path)
    picture = read_level_picture(tmp_path, "1-1")
    assert picture is not None
    image = picture.image()[..., :3]
    trace = read_trace(clear_path("1-1"))
    env = clear_env(trace)
    env.reset(seed=trace.seed, options={"noop_frames": trace.noop_frames})
    shares = []
    for action in trace.actions:
        env.step(action)
        scenery = env.scenery()
        part = image[:, scenery.left : scenery.left + 256]
        if scenery.visible.any():
            same = (env.screen() == part).all(axis=2)[scenery.visible]
            shares.append(float(same.mean()))
    env.close()

    assert len(shares) > 50
    assert np.mean(shares) > 0.995
    assert min(shares) > 0.97


def test_a_bonus_room_is_not_the_level(tmp_path: Path) -> None:
    """Under ground the sky would be black; the picture is of the area where the stage begins."""
    draw_level("1-2", tmp_path)

    picture = read_level_picture(tmp_path, "1-2")
    assert picture is not None
    colours, counts = np.unique(
        picture.image()[STATUS_BAR_PIXELS:].reshape(-1, 4), axis=0, return_counts=True
    )
    opaque = colours[:, 3] > 0
    most = colours[opaque][counts[opaque].argmax()]
    assert most[:3].tolist() == [0, 0, 0]
