from __future__ import annotations

from dataclasses import replace

import pytest

from actor.env.native_core import NativeCore
from actor.env.repetition import repeat
from common.errors import TraceInvalid
from common.game import STAGES
from common.traces import Trace
from tests.native.recorded_clears import clear_path, read_clears

_CLEARS = {clear.stage: clear for clear in read_clears()}


def test_every_stage_has_a_clear_in_a_file_of_its_name() -> None:
    assert set(_CLEARS) == set(STAGES)
    assert all(clear_path(stage).is_file() for stage in STAGES)


@pytest.mark.parametrize("clear", _CLEARS.values(), ids=_CLEARS)
def test_a_clear_ends_at_the_flag_with_the_recorded_ram(clear: Trace) -> None:
    again = repeat(clear, NativeCore())

    assert again.has_flag
    assert again.ram_sha256 == clear.final_ram_sha256
    most_frames = len(clear.actions) * clear.frame_skip
    assert most_frames - clear.frame_skip < again.frames <= most_frames


def test_a_clear_uses_buttons_only_from_the_first_frame_of_the_stage() -> None:
    assert {clear.noop_frames for clear in _CLEARS.values()} == {0}


def test_other_buttons_do_not_give_the_recorded_ram() -> None:
    clear = _CLEARS["1-1"]
    standing_at_the_end = replace(clear, actions=(*clear.actions[:-2], 0, 0))

    again = repeat(standing_at_the_end, NativeCore())

    assert again.ram_sha256 != clear.final_ram_sha256


def test_an_end_before_the_last_action_is_told() -> None:
    clear = _CLEARS["1-1"]
    longer = replace(clear, actions=(*clear.actions, 0))

    with pytest.raises(TraceInvalid, match=rf"1-1 ended with action {len(clear.actions)} of"):
        repeat(longer, NativeCore())


def test_noops_come_before_the_first_action() -> None:
    clear = replace(_CLEARS["1-1"], actions=(0,))

    waited = repeat(replace(clear, noop_frames=8), NativeCore())
    acted = repeat(replace(clear, actions=(0, 0, 0)), NativeCore())

    assert waited.ram_sha256 == acted.ram_sha256
    assert waited.ram_sha256 != repeat(clear, NativeCore()).ram_sha256
