from __future__ import annotations

import pytest

from common.errors import ExitCode
from launch.restart import RestartPolicy, may_restart, restart_delay_s

POLICY = RestartPolicy(first_delay_s=0.5, max_delay_s=30.0, max_fruitless_restarts=5)


@pytest.mark.parametrize("code", [1, ExitCode.TEMPORARY, 137, 139, ExitCode.TERMINATED])
def test_a_crash_is_restarted(code: int) -> None:
    assert may_restart(code, 0, POLICY)


def test_a_configuration_error_is_never_restarted() -> None:
    assert not may_restart(ExitCode.CONFIGURATION, 0, POLICY)


def test_a_crash_loop_ends() -> None:
    assert may_restart(1, 4, POLICY)
    assert not may_restart(1, 5, POLICY)


def test_delays_double_up_to_the_limit() -> None:
    delays = [restart_delay_s(count, 0.0, POLICY) for count in range(8)]

    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_jitter_adds_at_most_half() -> None:
    assert restart_delay_s(1, 1.0, POLICY) == 1.5
