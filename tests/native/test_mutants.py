from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.native.native_builds import BUILD_VARIABLE, SOURCES, build_extension

# Each quirk as it is not: mostly as the hardware has it.
MUTANTS = {
    "NES_FRAME_CYCLES": 29780,
    "NES_SKIPS_ODD_DOT": 0,
    "NES_BRANCH_CROSSING_CYCLES": 1,
    "NES_MODIFY_CROSSING_CYCLES": 0,
    "NES_IO_IN_FIRST_CYCLE": 0,
    "NES_DMA_PARITY": 0,
    "NES_INTERRUPT_CYCLES": 6,
    "NES_INTERRUPTS_AT_ONCE": 0,
    "NES_STATUS_REVERSED": 0,
    "NES_RENDERING_AT_RESET": 0,
    "NES_POWER_UP_BYTE": 255,
    "NES_RESTORE_KEEPS_CONTROLLERS": 0,
}


# What the game itself shows too rarely is left to the tests against the slow references.
JUDGES = {
    "NES_MODIFY_CROSSING_CYCLES": "test_cpu_against_reference.py",
    "NES_INTERRUPTS_AT_ONCE": "test_interrupt_border.py",
    "NES_RESTORE_KEEPS_CONTROLLERS": "test_save_states.py",
}
PYTEST_FAILED = 1


def judge(folder: Path, quirk: str) -> subprocess.CompletedProcess[str]:
    library = build_extension(folder, {quirk: MUTANTS[quirk]} if quirk else {})
    if quirk in JUDGES:
        return run_tests(library, JUDGES[quirk])
    return run(library, ["tests.native.mutant_play", str(library)])


def run_tests(library: Path, test_name: str) -> subprocess.CompletedProcess[str]:
    plugin = ["-p", "tests.native.mutant_plugin", "-p", "no:cacheprovider"]
    test_file = str(Path(__file__).with_name(test_name))
    return run(library, ["pytest", "-x", "-q", *plugin, test_file])


def run(library: Path, module: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *module],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | {BUILD_VARIABLE: str(library)},
    )


def test_every_quirk_has_a_mutant() -> None:
    text = (SOURCES / "quirks.hpp").read_text()
    named = {line.split()[1] for line in text.splitlines() if line.startswith("#ifndef")}

    assert named == set(MUTANTS)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_without_a_mutation_there_is_no_difference(tmp_path: Path) -> None:
    result = judge(tmp_path, "")

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("test_name", ["test_paths.py", "test_gray.py", "test_waiting_loops.py"])
def test_without_the_compilers_extras_the_core_is_the_same(test_name: str, tmp_path: Path) -> None:
    result = run_tests(build_extension(tmp_path, {"NES_PORTABLE": 1}), test_name)

    assert result.returncode == 0, result.stdout + result.stderr


# Each takes a build of its own; one of them on every run shows that the check itself works.
QUIRKS = [
    pytest.param(
        quirk, marks=pytest.mark.slow if quirk == "NES_FRAME_CYCLES" else pytest.mark.nightly
    )
    for quirk in MUTANTS
]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("quirk", QUIRKS)
def test_a_core_without_the_quirk_is_noticed(quirk: str, tmp_path: Path) -> None:
    result = judge(tmp_path, quirk)

    assert result.returncode == PYTEST_FAILED, result.stdout + result.stderr
    assert "Traceback" not in result.stderr
