"""FCEUmm through the real stable-retro, where somebody has installed it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import numpy as np
import pytest

from actor.env import ram as memory
from actor.env.fceumm_core import FceummCore
from actor.env.nes_core import NesPyCore
from actor.env.retro_library import MirroredRam
from actor.env.stage_game import StageGame
from common.game import BUTTON_BITS, STAGES

pytestmark = [
    pytest.mark.integration,
    # stable-retro cannot be a dependency: see docs/operations.md, section The core fceumm.
    pytest.mark.skipif(
        not any(importlib.util.find_spec(name) for name in ("stable_retro", "retro")),
        reason="needs stable-retro: pip install --no-deps stable-retro",
    ),
]
RUN_RIGHT = BUTTON_BITS["right"] | BUTTON_BITS["B"]


@pytest.fixture
def core() -> Iterator[FceummCore]:
    core = FceummCore()
    yield core
    core.close()


def _play(core: FceummCore, *, frames: int, seed: int) -> list[bytes]:
    """RAM and screen after each frame of random buttons."""
    seen = []
    for buttons in np.random.default_rng(seed).integers(256, size=frames):
        core.step(int(buttons))
        seen.append(bytes(core.ram) + core.screen().tobytes())
    return seen


def test_every_stage_starts_where_it_was_asked_to(core: FceummCore) -> None:
    game = StageGame(core, "1-1")
    started = {}

    for stage in STAGES:
        game.select(stage)
        info = game.reset()
        started[stage] = (f"{info['world']}-{info['stage']}", info["x_pos"])

    assert started == {stage: (stage, 40) for stage in STAGES}


def test_where_the_ram_cannot_be_written_the_first_stage_starts_nevertheless(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MirroredRam, "_probe", lambda _: False)
    monkeypatch.delenv("MARIO_FC_STRICT_STAGE", raising=False)
    core = FceummCore()

    info = StageGame(core, "1-1").reset()
    core.close()

    assert (info["world"], info["stage"], info["x_pos"], info["life"]) == (1, 1, 40, 2)
    assert info["time"] in (399, 400)


def test_a_loaded_state_and_a_power_on_repeat_the_same_frames(core: FceummCore) -> None:
    core.power_on()
    first = _play(core, frames=200, seed=1)
    core.save_state()
    second = _play(core, frames=200, seed=2)

    core.load_state()
    assert _play(core, frames=200, seed=2) == second
    core.power_on()
    assert _play(core, frames=200, seed=1) == first


def test_mario_runs_and_his_position_is_read_from_the_ram(core: FceummCore) -> None:
    game = StageGame(core, "1-1")

    played = game.play(RUN_RIGHT, 60)

    x = memory.x_position(core.ram)
    assert 90 < x < 200
    assert played.info["x_pos"] == x
    assert played.raw_reward == pytest.approx(x - 40, abs=5)


def test_the_picture_shows_the_same_place_as_that_of_nes_py(core: FceummCore) -> None:
    reference = NesPyCore()
    StageGame(core, "1-1")
    StageGame(reference, "1-1")
    ours, theirs = np.zeros((84, 84), dtype=np.uint8), np.zeros((84, 84), dtype=np.uint8)

    core.write_gray(ours)
    reference.write_gray(theirs)
    reference.close()

    # Without the border, which FCEUmm does not draw. The palettes differ a little.
    inner = (slice(4, -4), slice(4, -4))
    differences = np.abs(ours[inner].astype(int) - theirs[inner])
    shifted = np.abs(np.roll(ours, 2, axis=1)[inner].astype(int) - theirs[inner])
    assert differences.mean() < 6 < shifted.mean()
