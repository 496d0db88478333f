"""The compiled emulator through our own wrapper."""

from __future__ import annotations

import pytest

from actor.env.nes_core import NesPyCore
from common.errors import EnvironmentFailed

pytestmark = pytest.mark.integration


def test_a_core_without_a_saved_state_refuses_to_load_one() -> None:
    core = NesPyCore()

    with pytest.raises(EnvironmentFailed, match="no state was saved"):
        core.load_state()

    core.close()
    with pytest.raises(EnvironmentFailed, match="closed"):
        core.step(0)


def test_the_views_of_a_core_are_the_same_objects_for_ever() -> None:
    core = NesPyCore()
    ram, bgrx = core.ram, core.bgrx

    core.step(0, 30)
    core.save_state()
    core.step(0, 30)
    frames_later = bytes(ram)
    core.load_state()

    assert core.ram is ram
    assert core.bgrx is bgrx
    assert bytes(ram) != frames_later
    assert bgrx.flags.c_contiguous
    core.close()
