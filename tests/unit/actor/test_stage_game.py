from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from actor.env.stage_game import BUSY_LIMIT_FRAMES, StageGame, target_area
from common.errors import EnvironmentFailed

_TIME_HUNDREDS, _TIME_ONES = 0x07F8, 0x07FA
_PLAYER_STATE, _PAGE_Y = 0x000E, 0x00B5


class FakeCore:
    """A console whose game is one function of its RAM and the number of frames played."""

    def __init__(self, game: Callable[[memoryview, int], None]) -> None:
        self._content = bytearray(0x800)
        self._saved = bytes(0x800)
        self._game = game
        self.ram = memoryview(self._content)
        self.frames = 0
        self.pressed: list[int] = []
        self.looks: list[bool] = []

    def step(self, buttons: int, frames: int = 1, *, look: bool = True) -> None:
        for _ in range(frames):
            self.frames += 1
            self.pressed.append(buttons)
            self.looks.append(look)
            self._game(self.ram, self.frames)

    def write_gray(self, out: NDArray[np.uint8], *, crop_top_pixels: int = 0) -> None:
        out[:] = crop_top_pixels

    def screen(self) -> NDArray[np.uint8]:
        return np.zeros((240, 256, 3), dtype=np.uint8)

    def power_on(self) -> None:
        self.ram[:] = bytes(0x800)
        self.frames = 0

    def save_state(self) -> None:
        self._saved = bytes(self.ram)

    def load_state(self) -> None:
        self.ram[:] = self._saved

    def close(self) -> None:
        return


def _ordinary(ram: memoryview, frame: int) -> None:
    """The clock shows 401 at frame 10 and ticks at frame 20; then Mario is under control."""
    ram[_PLAYER_STATE] = 8
    ram[_PAGE_Y] = 1
    if frame >= 10:
        ram[_TIME_HUNDREDS] = 4
        ram[_TIME_ONES] = 1 if frame < 20 else 0


def _game_with(change: Callable[[memoryview, int], None]) -> tuple[FakeCore, StageGame]:
    """An ordinary start, and from then on the given change after every frame."""
    armed: list[bool] = []

    def game(ram: memoryview, frame: int) -> None:
        _ordinary(ram, frame)
        if armed:
            change(ram, frame)

    core = FakeCore(game)
    stage_game = StageGame(core, "1-1")
    armed.append(True)
    return core, stage_game


def _nothing(_: memoryview, __: int) -> None:
    return


def test_start_asks_for_the_stage_and_waits_for_the_first_tick() -> None:
    core = FakeCore(_ordinary)

    StageGame(core, "4-2")

    assert (core.ram[0x075F], core.ram[0x075C], core.ram[0x0760]) == (3, 1, 2)
    assert core.ram[_TIME_ONES] == 0


@pytest.mark.parametrize(
    ("world", "stage", "area"),
    [(1, 1, 1), (1, 2, 3), (1, 4, 5), (3, 2, 2), (4, 4, 5), (7, 3, 4), (8, 4, 4)],
)
def test_target_area_counts_the_intro_areas(world: int, stage: int, area: int) -> None:
    assert target_area(world, stage) == area


def test_start_screen_that_never_ends_is_named() -> None:
    with pytest.raises(EnvironmentFailed, match="pass_start_screen did not end within 1000"):
        StageGame(FakeCore(_nothing), "1-1")


def test_clock_that_never_ticks_is_named() -> None:
    def frozen(ram: memoryview, frame: int) -> None:
        _ordinary(ram, min(frame, 15))

    with pytest.raises(EnvironmentFailed, match="wait_for_first_tick did not end within 1000"):
        StageGame(FakeCore(frozen), "1-1")


def test_scene_that_never_ends_is_named() -> None:
    def in_a_pipe(ram: memoryview, _: int) -> None:
        ram[_PLAYER_STATE] = 3

    core, game = _game_with(in_a_pipe)
    frames_before = core.frames

    with pytest.raises(EnvironmentFailed, match=r"skip_occupied_states did not end.*state 3"):
        game.play(0x80, 4)

    assert core.frames - frames_before == 1 + BUSY_LIMIT_FRAMES


def test_scenes_are_skipped_without_buttons_and_without_reward() -> None:
    core, game = _game_with(_nothing)
    start = core.frames

    def walk_by_himself(ram: memoryview, frame: int) -> None:
        _ordinary(ram, frame)
        ram[_PLAYER_STATE] = 5 if frame < start + 10 else 8

    core._game = walk_by_himself
    core.pressed.clear()

    played = game.play(0x80, 1)

    assert (played.frames, played.raw_reward, played.is_over) == (1, 0.0, False)
    assert core.pressed == [0x80] + [0] * 9


def test_only_the_last_frame_of_an_agent_step_is_looked_at() -> None:
    core, game = _game_with(_nothing)
    assert not any(core.looks), "nobody sees how the start screen is passed"
    core.looks.clear()

    game.play(0x80, 4)

    assert core.looks == [False, False, False, True]


def test_change_of_area_is_hurried() -> None:
    def leave(ram: memoryview, _: int) -> None:
        ram[0x06DE] = 40

    core, game = _game_with(leave)

    game.play(0, 1)

    assert core.ram[0x06DE] == 1


def test_play_stops_at_a_death() -> None:
    def fall(ram: memoryview, _: int) -> None:
        ram[_PAGE_Y] = 2

    core, game = _game_with(fall)
    frames_before = core.frames

    played = game.play(0x80, 4)

    assert (played.is_over, played.frames, played.raw_reward) == (True, 1, -15.0)
    assert core.frames - frames_before == 1


def test_play_stops_at_the_flag() -> None:
    def slide_down(ram: memoryview, _: int) -> None:
        ram[0x16], ram[0x1D] = 0x31, 3

    _, game = _game_with(slide_down)

    played = game.play(0x80, 4)

    assert played.is_over
    assert played.info["flag_get"] is True


def test_rewards_of_all_frames_are_summed() -> None:
    def run(ram: memoryview, _: int) -> None:
        ram[0x86] += 3

    _, game = _game_with(run)

    assert game.play(0x80, 4).raw_reward == 12.0


def test_reset_measures_rewards_from_the_first_frame_again() -> None:
    def run(ram: memoryview, _: int) -> None:
        ram[0x86] += 3

    _, game = _game_with(run)
    game.play(0x80, 4)

    info = game.reset()

    assert info["x_pos"] == 0
    assert game.play(0x80, 1).raw_reward == 3.0


def test_info_holds_plain_python_values() -> None:
    _, game = _game_with(_nothing)

    info = game.play(0, 1).info

    assert {type(value) for value in info.values()} == {int, bool, str}
