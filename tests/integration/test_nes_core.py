"""The compiled emulator through our own wrapper."""

from __future__ import annotations

import pytest

from actor.env.nes_core import NesPyCore
from common.errors import EnvironmentFailed
from tests.gray_picture import check_shapes_and_crops

pytestmark = pytest.mark.integration


def test_a_core_without_a_saved_state_refuses_to_load_one() -> None:
    core = NesPyCore()

    with pytest.raises(EnvironmentFailed, match="no state was saved"):
        core.load_state()

    core.close()
    with pytest.raises(EnvironmentFailed, match="closed"):
        core.step(0)


def test_the_ram_of_a_core_is_the_same_object_for_ever() -> None:
    core = NesPyCore()
    ram = core.ram

    core.step(0, 30)
    core.save_state()
    core.step(0, 30)
    frames_later = bytes(ram)
    core.load_state()

    assert core.ram is ram
    assert bytes(ram) != frames_later
    core.close()


def test_every_picture_has_the_shape_and_crop_that_was_asked_for() -> None:
    core = NesPyCore()
    core.step(0, 60)

    check_shapes_and_crops(core)

    core.close()
