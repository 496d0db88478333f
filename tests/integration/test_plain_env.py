"""The reference of the benchmark `env`: slower than ours, but the same game."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from actor.env.mario_env import MarioEnv
from launch.benchmarks.plain_env import Stacked, plain_chain

pytestmark = pytest.mark.integration
WALK, RUN = 1, 3
"""To the right, into the first enemy: after whole agent steps, and in the middle of one."""
FACTS = ("x_pos", "y_pos", "time", "score", "life", "world", "stage", "flag_get")


@pytest.fixture(scope="module")
def plain() -> Stacked:
    return plain_chain("1-1", frame_skip=4, size=84)


@pytest.fixture(scope="module")
def ours() -> Iterator[MarioEnv]:
    env = MarioEnv(stage="1-1", core="nes_py", frame_skip=4, size=84)
    yield env
    env.close()


def test_it_plays_the_same_episodes_as_ours(plain: Stacked, ours: MarioEnv) -> None:
    for action in (WALK, RUN):
        plain.reset()
        ours.reset()
        for agent_step in range(200):
            _, _, is_terminated, is_truncated, info = ours.step(action)
            _, reward, is_over, facts = plain.step(action)

            expected = (info["raw_reward"], is_terminated or is_truncated)
            assert (reward, is_over) == expected, agent_step
            assert [facts[name] for name in FACTS] == [info[name] for name in FACTS], agent_step
            if is_over:
                break
        assert is_over


def test_it_sees_the_same_pictures_as_ours(plain: Stacked, ours: MarioEnv) -> None:
    pictures = [plain.reset(), *(plain.step(WALK)[0] for _ in range(6))]
    expected = [ours.reset()[0], *(ours.step(WALK)[0] for _ in range(6))]

    for theirs, our_own in zip(pictures, expected, strict=True):
        assert theirs.shape == our_own.shape == (4, 84, 84)
        assert theirs.dtype == np.uint8
        # OpenCV's mean over an area is not exact.
        assert np.abs(theirs.astype(int) - our_own.astype(int)).max() <= 3
    assert not np.array_equal(pictures[-1][0], pictures[-1][-1])
