"""Our stage game against the original, frame by frame; a difference would move our results."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from actor.env.core_choice import make_core
from actor.env.stage_game import StageGame
from common.config import CoreName
from common.game import ACTION_SETS, STAGES, button_byte, parse_stage

pytestmark = pytest.mark.integration

_BOTH: tuple[CoreName, ...] = ("nes_py", "native")
# Seeds whose play ends at least one episode within the quick test's frames.
_QUICK_PLAY = (
    ("1-1", 1, _BOTH),
    ("1-2", 2, ("native",)),
    ("2-2", 4, ("native",)),
    ("8-4", 1, ("native",)),
)
_FACTS = (
    *("coins", "flag_get", "life", "score", "stage"),
    *("status", "time", "world", "x_pos", "y_pos"),
)


def _byte(address: int, offset: int = 0) -> property:
    return property(lambda env: int(env.ram[address]) + offset)


def _y_position(env: Any) -> int:
    height = 255 - int(env.ram[0x03B8])
    return 255 + height if int(env.ram[0x00B5]) < 1 else height


@pytest.fixture
def original(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The original class, repaired only where NumPy 2 makes its uint8 arithmetic overflow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        original_class = import_module("gym_super_mario_bros.smb_env").SuperMarioBrosEnv
        rom_class = import_module("nes_py._rom").ROM
    monkeypatch.setattr(rom_class, "prg_rom_size", property(lambda rom: 16 * int(rom.header[4])))
    monkeypatch.setattr(rom_class, "chr_rom_size", property(lambda rom: 8 * int(rom.header[5])))
    x_position = property(lambda env: int(env.ram[0x6D]) * 0x100 + int(env.ram[0x86]))
    monkeypatch.setattr(original_class, "_x_position", x_position)
    monkeypatch.setattr(original_class, "_y_position", property(_y_position))
    for name, address in (("_world", 0x075F), ("_stage", 0x075C), ("_area", 0x0760)):
        monkeypatch.setattr(original_class, name, _byte(address, 1))
    monkeypatch.setattr(original_class, "_life", _byte(0x075A))
    return original_class


def _random_buttons(generator: random.Random) -> Iterator[int]:
    """Held for a while and mostly to the right, so that play reaches pits, pipes and flags."""
    choices = [button_byte(action) for action in ACTION_SETS["extended"]]
    rightward = [button_byte(action) for action in ACTION_SETS["right_only"][1:]]
    while True:
        buttons = generator.choice(rightward if generator.random() < 0.8 else choices)
        for _ in range(generator.randint(1, 24)):
            yield buttons


class Beside:
    """Our game on some core, played beside the original."""

    def __init__(self, core: CoreName, stage: str) -> None:
        self.name = core
        self.core = make_core(core)
        self.game = StageGame(self.core, stage)

    def check(self, held: int, outcome: tuple[float, bool, dict[str, object]], where: str) -> None:
        ours = self.game.play(held, 1)
        facts = {name: ours.info[name] for name in _FACTS}
        assert (ours.raw_reward, ours.is_over, facts) == outcome, f"{self.name}, {where}"

    def check_memory(self, ram: bytes, where: str) -> None:
        assert bytes(self.core.ram) == ram, f"{self.name}, {where}"


def _compare(
    original: Any, stage: str, *, cores: Sequence[CoreName], frames: int, seed: int
) -> int:
    """Play all for some frames; returns the number of episodes that ended."""
    ours = [Beside(core, stage) for core in cores]
    theirs = original(target=parse_stage(stage))
    theirs.reset()
    buttons = _random_buttons(random.Random(seed))
    episodes = 0
    for frame in range(frames):
        held = next(buttons)
        screen, reward, done, info = theirs.step(held)
        where = f"stage {stage}, seed {seed}, frame {frame}"
        for one in ours:
            one.check(held, (reward, done, info), where)
            one.check_memory(theirs.ram.tobytes(), where)
            if frame % 50 == 0 or done:
                np.testing.assert_array_equal(one.core.screen(), screen, where)
            if done:
                one.game.reset()
        if done:
            episodes += 1
            theirs.reset()
    theirs.close()
    for one in ours:
        one.core.close()
    return episodes


@pytest.mark.parametrize(("stage", "seed", "cores"), _QUICK_PLAY)
def test_play_equals_the_original(
    original: Any, stage: str, seed: int, cores: Sequence[CoreName]
) -> None:
    episodes = _compare(original, stage, cores=cores, frames=600, seed=seed)

    assert episodes > 0


def test_the_end_of_a_world_equals_the_original(original: Any) -> None:
    theirs = original(target=(8, 4))
    theirs.reset()
    theirs.ram[0x0770] = 2

    _, reward, done, info = theirs.step(0)

    assert info["flag_get"]
    for core in _BOTH:
        ours = Beside(core, "8-4")
        ours.core.ram[0x0770] = 2
        ours.check(0, (reward, done, info), "end of the world")
        ours.core.close()
    theirs.close()


# The reference takes part in the long plays of the night; here it would double the time.
@pytest.mark.slow
@pytest.mark.parametrize("stage", STAGES)
def test_play_equals_the_original_on_every_stage(original: Any, stage: str) -> None:
    _compare(original, stage, cores=("native",), frames=100, seed=5)


@pytest.mark.nightly
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.timeout(300)
def test_long_play_equals_the_original_on_every_stage(original: Any, stage: str) -> None:
    episodes = _compare(original, stage, cores=_BOTH, frames=4_000, seed=11)

    assert episodes > 0
