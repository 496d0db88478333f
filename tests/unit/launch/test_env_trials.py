from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import psutil
import pytest

from common.errors import ConfigError
from launch.env_regression import RegressionArgs
from launch.env_trials import TrialPlan, probe_command, quantile, run_commands

_PLAN = TrialPlan(
    mode="serial",
    envs=2,
    game="corridor",
    stage="1-1",
    core="native",
    timeout_s=30.0,
    lock_path=Path("construction.lock"),
)
_GOOD = "import json; print(json.dumps({'ok': True, 'durations_s': {'ready': 0.5}}))"
_HANGING = "import faulthandler, time; faulthandler.enable(); time.sleep(60)"
_LOCKED_OUT = (
    "import json, sys\n"
    "print(json.dumps({'ok': False, 'error': 'ConstructionTimeout: held by actor-3'}))\n"
    "sys.exit(75)"
)


def _python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


@pytest.fixture
def earlier_children() -> list[psutil.Process]:
    """Of this process; the standard library's resource tracker outlives the test that needs it."""
    return psutil.Process().children(recursive=True)


def _children_beside(earlier: list[psutil.Process]) -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child not in earlier]


def test_serial_children_share_the_lock_and_concurrent_ones_do_not() -> None:
    serial = probe_command(_PLAN, 1)

    assert serial[:3] == [sys.executable, "-m", "actor.env.probe"]
    assert serial[serial.index("--lock") + 1] == "host"
    assert serial[serial.index("--index") + 1] == "1"
    assert serial[serial.index("--core") + 1] == "native"


@pytest.mark.parametrize(
    ("share", "expected"), [(0.0, 1), (0.5, 5), (0.9, 9), (0.95, 10), (1.0, 10)]
)
def test_quantiles(share: float, expected: float) -> None:
    assert quantile([10, 3, 1, 2, 5, 4, 6, 8, 7, 9], share) == expected


def test_quantile_of_a_single_value() -> None:
    assert quantile([4.0], 0.95) == 4.0


@pytest.mark.integration
def test_outcomes_are_told_apart() -> None:
    programs = [_GOOD, "raise SystemExit('no emulator')", _LOCKED_OUT, "print('hello')"]

    result = run_commands([_python(program) for program in programs], 4, 30.0)

    assert [child.outcome for child in result.children] == ["ok", "failed", "timeout", "failed"]
    assert result.children[0].durations_s == {"ready": 0.5}
    assert "no emulator" in result.children[1].error
    assert "actor-3" in result.children[2].error


@pytest.mark.integration
def test_a_child_that_hangs_shows_its_stack_and_is_gone(
    earlier_children: list[psutil.Process],
) -> None:
    began = time.monotonic()

    result = run_commands([_python(_HANGING), _python(_GOOD)], 0, 0.5)

    assert time.monotonic() - began < 10
    assert result.children[0].outcome == "timeout"
    assert "most recent call first" in result.children[0].error
    assert not _children_beside(earlier_children)


@pytest.mark.integration
def test_an_interrupted_trial_leaves_no_child(
    monkeypatch: pytest.MonkeyPatch, earlier_children: list[psutil.Process]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("launch.env_trials._collect", interrupt)

    with pytest.raises(KeyboardInterrupt):
        run_commands([_python(_HANGING), _python(_HANGING)], 0, 30.0)

    assert not _children_beside(earlier_children)


@pytest.mark.integration
def test_a_record_is_json_and_counts() -> None:
    result = run_commands([_python(_GOOD), _python("raise SystemExit(1)")], 7, 30.0)

    record = json.loads(json.dumps(result.record(_PLAN)))

    assert (record["trial"], record["mode"], record["ok"]) == (7, "serial", False)
    assert (record["successes"], record["timeouts"], record["failures"]) == (1, 0, 1)
    assert [child["index"] for child in record["children"]] == [0, 1]


@pytest.mark.parametrize("timeout_s", [-1.0, float("nan"), 1e300])
def test_a_timeout_that_nobody_can_wait_for_is_refused(timeout_s: float) -> None:
    with pytest.raises(ConfigError, match="--timeout-s must be between 0 and 604800"):
        RegressionArgs(timeout_s=timeout_s)
