from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import pytest

from actor.env.fceumm_core import FceummCore, button_masks
from actor.env.preprocess import ScreenShrinker
from common.errors import ConfigError, CoreUnavailable, EnvironmentFailed
from common.game import BUTTON_BITS
from tests.fake_retro import (
    FRAME_COUNT_ADDRESS,
    FakeEmulator,
    FakeGameData,
    ReadOnlyGameData,
    fake_module,
)

CARTRIDGE = Path("game.nes")
STRICT, SILENT = "MARIO_FC_STRICT_STAGE", "MARIO_SUPPRESS_FC_STAGE_WARN"


@pytest.fixture(autouse=True)
def no_emulator_left() -> None:
    """An emulator that a failed test left in its traceback would refuse all others."""
    FakeEmulator._running = None


def _install(monkeypatch: pytest.MonkeyPatch, game_data: type[FakeGameData] = FakeGameData) -> None:
    monkeypatch.setitem(sys.modules, "stable_retro", fake_module("stable_retro", game_data))


def _core(monkeypatch: pytest.MonkeyPatch) -> tuple[FceummCore, FakeEmulator]:
    _install(monkeypatch)
    core = FceummCore(CARTRIDGE)
    assert isinstance(core._emulator, FakeEmulator)
    return core, core._emulator


def test_without_stable_retro_the_command_to_install_it_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "stable_retro", None)
    monkeypatch.setitem(sys.modules, "retro", None)

    with pytest.raises(CoreUnavailable, match="pip install --no-deps stable-retro"):
        FceummCore(CARTRIDGE)


def test_an_older_stable_retro_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_retro", None)
    monkeypatch.setitem(sys.modules, "retro", fake_module("retro"))

    FceummCore(CARTRIDGE).close()


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_package", "stable_retro needs the package no_such_package"),
        ("raise ImportError('libz.so.9 is missing')", r"libz\.so\.9 is missing; reinstall"),
        ("", "the module stable_retro is not stable-retro's"),
    ],
)
def test_a_broken_stable_retro_is_told_from_a_missing_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: str, reason: str
) -> None:
    (tmp_path / "stable_retro.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "stable_retro", raising=False)

    with pytest.raises(CoreUnavailable, match=reason):
        FceummCore(CARTRIDGE)

    sys.modules.pop("stable_retro", None)


def test_a_second_emulator_in_one_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _ = _core(monkeypatch)

    with pytest.raises(ConfigError, match=r"multiple emulator.*--envs-per-actor 1"):
        FceummCore(CARTRIDGE)

    core.close()


def test_a_closed_core_makes_room_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch)
    first = FceummCore(CARTRIDGE)

    first.close()
    first.close()

    FceummCore(CARTRIDGE).close()


@pytest.mark.parametrize(("name", "bit"), BUTTON_BITS.items())
def test_every_button_has_its_place(name: str, bit: int) -> None:
    libretro_places = {"B": 0, "select": 2, "start": 3, "up": 4, "down": 5, "left": 6, "right": 7}

    assert np.flatnonzero(button_masks()[bit]).tolist() == [libretro_places.get(name, 8)]


def test_buttons_are_held_for_all_frames_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    core, emulator = _core(monkeypatch)

    core.step(BUTTON_BITS["right"] | BUTTON_BITS["A"], 3)
    core.step(0)

    assert emulator.held == [(7, 8), (7, 8), (7, 8), ()]


def test_ram_follows_the_console_in_the_same_place(monkeypatch: pytest.MonkeyPatch) -> None:
    core, emulator = _core(monkeypatch)
    ram = core.ram

    core.step(0, 5)

    assert core.ram is ram
    assert ram[FRAME_COUNT_ADDRESS] == 5
    assert bytes(ram) == bytes(emulator.ram)


def test_what_is_written_to_the_ram_is_there_in_the_next_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, emulator = _core(monkeypatch)

    core.ram[0x075F] = 3
    core.ram[FRAME_COUNT_ADDRESS] = 100
    core.step(0)

    assert emulator.ram[0x075F] == core.ram[0x075F] == 3
    assert core.ram[FRAME_COUNT_ADDRESS] == 101


def test_what_is_written_to_the_ram_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _ = _core(monkeypatch)

    core.ram[0x075F] = 3
    core.save_state()
    core.ram[0x075F] = 4
    core.step(0)
    core.load_state()

    assert core.ram[0x075F] == 3


def test_what_is_written_back_after_a_save_reaches_the_console_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, emulator = _core(monkeypatch)
    core.step(0)
    core.ram[0x075F] = 3
    core.save_state()

    core.ram[0x075F] = 0
    core.step(0)

    assert emulator.ram[0x075F] == 0


def test_power_on_clears_the_ram_and_keeps_the_save_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    core, emulator = _core(monkeypatch)
    assert bytes(core.ram) == bytes(0x800)
    core.step(0, 7)
    core.save_state()

    core.power_on()
    core.step(0)

    assert bytes(emulator.ram) == bytes(FRAME_COUNT_ADDRESS) + b"\x01" + bytes(0x7F6)
    core.load_state()
    assert core.ram[FRAME_COUNT_ADDRESS] == 7


def test_a_loaded_state_brings_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _ = _core(monkeypatch)
    core.step(0, 50)
    core.save_state()
    core.step(0, 100)
    assert core.screen().max() == 150

    core.load_state()

    assert core.screen().max() == 50


def test_the_screen_is_rgb_with_a_black_border(monkeypatch: pytest.MonkeyPatch) -> None:
    core, emulator = _core(monkeypatch)
    core.step(0)
    colours = np.random.default_rng(1).integers(256, size=emulator.picture.shape, dtype=np.uint8)
    emulator.picture = colours

    screen = core.screen()

    assert screen.flags.c_contiguous
    np.testing.assert_array_equal(screen, np.pad(colours, ((8, 8), (8, 8), (0, 0))))


@pytest.mark.parametrize("crop_top_pixels", [0, 40])
def test_the_gray_picture_is_that_of_the_whole_screen(
    monkeypatch: pytest.MonkeyPatch, crop_top_pixels: int
) -> None:
    core, emulator = _core(monkeypatch)
    core.step(0)
    rng = np.random.default_rng(2)
    emulator.picture = rng.integers(256, size=emulator.picture.shape, dtype=np.uint8)
    out, expected = np.zeros((84, 96), dtype=np.uint8), np.zeros((84, 96), dtype=np.uint8)

    core.write_gray(out, crop_top_pixels=crop_top_pixels)

    bgrx = np.dstack([core.screen()[:, :, ::-1], np.zeros((240, 256), dtype=np.uint8)])
    ScreenShrinker(84, 96, crop_top_pixels=crop_top_pixels).write(bgrx, expected)
    np.testing.assert_array_equal(out, expected)


def test_gray_pictures_of_several_shapes_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _ = _core(monkeypatch)
    core.step(0, 200)

    for height, width, crop_top_pixels in ((84, 84, 0), (42, 64, 0), (42, 64, 24)):
        out = np.zeros((height, width), dtype=np.uint8)
        core.write_gray(out, crop_top_pixels=crop_top_pixels)
        assert out[height // 2, width // 2] == 200
        assert (out[0, width // 2] < 200) == (crop_top_pixels == 0)


def test_a_picture_of_another_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    core, emulator = _core(monkeypatch)
    emulator.picture = np.zeros((240, 256, 3), dtype=np.uint8)
    core.step(0)

    with pytest.raises(EnvironmentFailed, match=r"\(224, 240, 3\), FCEUmm drew \(240, 256, 3\)"):
        core.screen()


def test_a_core_without_a_saved_state_refuses_to_load_one(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _ = _core(monkeypatch)

    with pytest.raises(EnvironmentFailed, match="no state was saved"):
        core.load_state()


def test_a_state_that_is_not_taken_back_is_no_silent_start(monkeypatch: pytest.MonkeyPatch) -> None:
    core, emulator = _core(monkeypatch)
    core.save_state()
    emulator.accepts_states = False

    with pytest.raises(EnvironmentFailed, match="refused a state"):
        core.load_state()


def test_a_closed_core_refuses_to_play(monkeypatch: pytest.MonkeyPatch) -> None:
    core, _ = _core(monkeypatch)
    core.save_state()
    core.close()

    for use in (lambda: core.step(0), core.screen, core.save_state, core.load_state, core.power_on):
        with pytest.raises(EnvironmentFailed, match="closed"):
            use()


def test_a_core_that_cannot_choose_the_stage_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _install(monkeypatch, ReadOnlyGameData)
    monkeypatch.delenv(STRICT, raising=False)
    monkeypatch.delenv(SILENT, raising=False)

    core = FceummCore(CARTRIDGE)
    core.power_on()
    core.step(0)

    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "only stage 1-1" in caplog.text


def test_the_warning_about_stages_can_be_silenced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _install(monkeypatch, ReadOnlyGameData)
    monkeypatch.delenv(STRICT, raising=False)
    monkeypatch.setenv(SILENT, "1")

    FceummCore(CARTRIDGE)

    assert caplog.records == []


def test_the_limit_of_stages_can_be_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _install(monkeypatch, ReadOnlyGameData)
    monkeypatch.setenv(STRICT, "1")
    monkeypatch.setenv(SILENT, "1")

    with pytest.raises(ConfigError, match="only stage 1-1"):
        FceummCore(CARTRIDGE)


def test_a_core_that_can_choose_the_stage_is_silent_and_passes_the_strict_test(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(STRICT, "1")

    _core(monkeypatch)

    assert caplog.records == []


def test_where_nobody_can_clear_the_ram_the_game_gets_time_to_do_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _install(monkeypatch, ReadOnlyGameData)
    monkeypatch.delenv(STRICT, raising=False)
    core = FceummCore(CARTRIDGE)

    core.ram[:] = bytes(0x800)
    core.power_on()

    assert core.ram[FRAME_COUNT_ADDRESS] == (0xFF + 10) % 256
    assert core.ram[0] == 0xFF
