"""GPU readings through the real pynvml and the real loader, from a driver library built here."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent.parent
SOURCE = Path(__file__).parent / "fake_nvml.c"
DEADLINE_S = 30
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")

READ = """
import json
from common.nvml import read_gpus
print(json.dumps(read_gpus()))
"""

WATCH = """
import json, time
from common import nvml
nvml.STALE_AFTER_S = {stale_after_s}
watch = nvml.GpuWatch(interval_s=0.05)
end_s = time.monotonic() + 10
while watch.last()[1] == "no reading yet" and time.monotonic() < end_s:
    time.sleep(0.01)
started_s = time.monotonic()
readings, error = watch.last()
answer_s = time.monotonic() - started_s
watch.close()
print(json.dumps([readings, error, answer_s]))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the library under the name that pynvml loads."""
    if COMPILER is None:
        pytest.skip("no C compiler (cc, gcc or clang) to build the driver library with")
    folder = tmp_path_factory.mktemp("driver")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(
        [COMPILER, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, SOURCE],
        check=True,
        timeout=DEADLINE_S,
    )
    return folder


def run(code: str, driver: Path | None, **fake: str) -> Any:
    """What a fresh process prints, which finds the library in this folder, or none."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LD_LIBRARY_PATH": str(driver or "")}
    environment.update({f"FAKE_NVML_{name.upper()}": value for name, value in fake.items()})
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        env=environment,
        check=True,
    )
    return json.loads(done.stdout)


def test_all_fields_are_read(driver: Path) -> None:
    (reading,) = run(READ, driver)

    assert reading == {
        "index": 0,
        "error": None,
        "name": "Fake RTX 0",
        "util_percent": 40,
        "mem_used_mb": 3 * 1024,
        "mem_total_mb": 24 * 1024,
        "temperature_c": 61,
        "power_w": 123.5,
        "clock_sm_mhz": 1800,
        "clock_mem_mhz": 9500,
        "throttle_reasons": 4,
        "processes": 0,
    }


def test_every_board_is_read(driver: Path) -> None:
    readings = run(READ, driver, gpus="3")

    assert [reading["index"] for reading in readings] == [0, 1, 2]
    assert [reading["util_percent"] for reading in readings] == [40, 41, 42]


def test_a_field_that_is_not_supported_is_null_with_the_reason(driver: Path) -> None:
    (reading,) = run(READ, driver, fault="power")

    assert reading["power_w"] is None
    assert reading["error"] == "power_w: Not Supported"
    others = set(reading) - {"power_w", "error"}
    assert all(reading[name] is not None for name in others)


def test_running_processes_are_counted_although_their_number_is_not_known_before(
    driver: Path,
) -> None:
    (reading,) = run(READ, driver, fault="processes")

    assert reading["processes"] == 2


def test_a_lost_board_does_not_hide_the_others(driver: Path) -> None:
    first, second = run(READ, driver, gpus="2", fault="lost:0")

    assert first == {"index": 0, "error": "handle: GPU is lost"}
    assert second["util_percent"] == 41


def test_a_watch_has_the_readings(driver: Path) -> None:
    readings, error, _ = run(WATCH.format(stale_after_s=20), driver)

    assert error is None
    assert readings[0]["name"] == "Fake RTX 0"


def test_no_board_is_said(driver: Path) -> None:
    readings, error, _ = run(WATCH.format(stale_after_s=20), driver, gpus="0")

    assert (readings, error) == (None, "no GPU found")


def test_a_driver_that_is_not_loaded_is_said(driver: Path) -> None:
    readings, error, _ = run(WATCH.format(stale_after_s=20), driver, fault="init")

    assert readings is None
    assert "Driver Not Loaded" in error


def test_a_driver_that_hangs_blocks_nobody(driver: Path) -> None:
    code = WATCH.format(stale_after_s=0.6)

    readings, error, answer_s = run(code, driver, fault="hang")

    assert readings is None
    assert re.fullmatch(r"NVML has not answered for \d+ s", error)
    assert answer_s < 0.1


def test_a_missing_library_is_said(tmp_path: Path) -> None:
    readings, error, _ = run(WATCH.format(stale_after_s=20), tmp_path)

    if error is None:
        pytest.skip("this host has an NVIDIA driver of its own")
    assert readings is None
    assert "NVML" in error
