from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from actor.env.cartridge import find_cartridge
from actor.env.native_core import NativeCore
from actor.env.stage_game import StageGame
from common.game import STAGES
from tests.native.native_builds import build_program

STREAMS = 100_000
SANITIZERS = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def first_states() -> bytes:
    core = NativeCore()
    game = StageGame(core, "1-1")
    states = []
    for stage in STAGES:
        game.select(stage)
        states.append(core.snapshot())
    return b"".join(states)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_random_buttons_pictures_and_forged_states_are_clean(tmp_path: Path) -> None:
    states = tmp_path / "states"
    states.write_bytes(first_states())
    program = build_program(tmp_path, Path(__file__).with_name("button_streams.cpp"), SANITIZERS)

    result = subprocess.run(
        [str(program), str(find_cartridge()), str(states), str(STREAMS), "1"],
        capture_output=True,
        text=True,
        check=False,
        timeout=3000,
    )

    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.startswith(f"{STREAMS} streams")
