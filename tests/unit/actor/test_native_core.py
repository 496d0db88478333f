from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from actor.env.native_core import NativeCore, load_console
from common.errors import ConfigError, CoreUnavailable, EnvironmentFailed, ExitCode
from tests.gray_picture import check_shapes_and_crops

_RIGHT = 0x80


def test_a_state_must_be_saved_before_it_is_loaded() -> None:
    core = NativeCore()

    with pytest.raises(EnvironmentFailed, match="no state was saved"):
        core.load_state()


def test_a_closed_core_says_so() -> None:
    core = NativeCore()
    core.close()
    core.close()

    out = np.zeros((8, 8), dtype=np.uint8)
    for call in (
        lambda: core.step(0),
        lambda: core.write_gray(out),
        core.screen,
        core.power_on,
        core.save_state,
        core.load_state,
    ):
        with pytest.raises(EnvironmentFailed, match="closed"):
            call()


def test_the_ram_is_the_same_object_for_ever_and_follows_the_game() -> None:
    core = NativeCore()
    ram = core.ram

    core.step(0, 30)
    core.save_state()
    saved = bytes(ram)
    core.step(0, 30)
    later = bytes(ram)
    core.load_state()

    assert core.ram is ram
    assert saved != later
    assert bytes(ram) == saved


def test_the_slot_does_not_hold_the_controllers() -> None:
    core, other = NativeCore(), NativeCore()
    for one in (core, other):
        one.step(_RIGHT, 10)
        one.save_state()
    assert core._console is not None
    assert other._console is not None
    core.step(0, 10)
    held_nothing = core._console.save()

    core.load_state()

    expected = other._console
    expected.load(held_nothing)
    assert other._saved is not None
    expected.load(other._saved, True)
    assert core._console.save() == expected.save()
    assert core._console.save() != other._saved


def test_power_on_starts_afresh_and_keeps_the_slot() -> None:
    core = NativeCore()
    core.step(0, 30)
    core.save_state()
    saved = bytes(core.ram)

    core.power_on()

    assert bytes(core.ram) == bytes(0x800)
    core.load_state()
    assert bytes(core.ram) == saved


def test_a_picture_is_the_same_whether_or_not_it_was_announced() -> None:
    announced, surprised = NativeCore(), NativeCore()
    grays = []
    for core, look in ((announced, True), (surprised, False)):
        core.step(0, 60, look=look)
        gray = np.zeros((84, 96), dtype=np.uint8)
        core.write_gray(gray, crop_top_pixels=16)
        grays.append(gray.tobytes())

    assert grays[0] == grays[1]
    assert len(set(grays[0])) > 1
    np.testing.assert_array_equal(announced.screen(), surprised.screen())


def test_every_picture_has_the_shape_and_crop_that_was_asked_for() -> None:
    core = NativeCore()
    core.step(0, 60)

    check_shapes_and_crops(core)


def test_a_screen_is_a_copy() -> None:
    core = NativeCore()
    core.step(0, 60)
    screen = core.screen()
    expected = screen.copy()

    core.screen()[:] = 7
    core.step(0, 200)

    np.testing.assert_array_equal(screen, expected)
    assert screen.shape == (240, 256, 3)
    assert screen.flags.c_contiguous


def test_a_missing_extension_is_a_configuration_error_with_reason_and_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "actor.env.native._console", None)

    with pytest.raises(CoreUnavailable, match=r"_console halted.*C\+\+ compiler") as caught:
        load_console()

    assert caught.value.exit_code is ExitCode.CONFIGURATION


def test_a_cartridge_that_it_cannot_play_is_named_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "game.nes"
    path.write_bytes(b"NES\x1a")

    with pytest.raises(ConfigError, match=r"game\.nes: too short"):
        NativeCore(path)
    with pytest.raises(ConfigError, match=r"cannot read the cartridge .*missing\.nes"):
        NativeCore(tmp_path / "missing.nes")
