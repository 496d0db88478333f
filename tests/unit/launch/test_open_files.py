from __future__ import annotations

import resource

import pytest

from common.errors import ConfigError
from common.keys import MAX_CONNECTIONS
from common.transport_guard import connection_limit
from launch.open_files import (
    PER_PROCESS,
    RESERVE,
    ensure_open_files,
    most_processes,
    require_connections,
)

PROCESSES = 10
NEEDED = RESERVE + PER_PROCESS * PROCESSES


class Limits:
    def __init__(self, soft: int, hard: int) -> None:
        self.now = (soft, hard)

    def get(self, _: int) -> tuple[int, int]:
        return self.now

    def set(self, _: int, limits: tuple[int, int]) -> None:
        self.now = limits


def limit(monkeypatch: pytest.MonkeyPatch, soft: int, hard: int) -> Limits:
    limits = Limits(soft, hard)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)
    return limits


@pytest.mark.parametrize("soft", [NEEDED, resource.RLIM_INFINITY])
def test_a_limit_that_is_enough_is_left_alone(monkeypatch: pytest.MonkeyPatch, soft: int) -> None:
    limits = limit(monkeypatch, soft, NEEDED + 1)

    ensure_open_files(PROCESSES)

    assert limits.now == (soft, NEEDED + 1)


def test_the_limit_is_raised_where_the_system_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = limit(monkeypatch, NEEDED - 1, NEEDED)

    ensure_open_files(PROCESSES)

    assert limits.now == (NEEDED, NEEDED)


def test_more_processes_than_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    limit(monkeypatch, 64, NEEDED - 1)

    with pytest.raises(ConfigError, match=f"10 processes need {NEEDED} open files.*fewer --actors"):
        ensure_open_files(PROCESSES)


def test_a_swarm_that_the_hard_limit_does_not_allow_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit(monkeypatch, 64, 2_000)

    require_connections(900)
    with pytest.raises(ConfigError, match=r"1000 actors need 2128 open files.*hard limit.*2000"):
        require_connections(1_000)


def test_with_keys_connections_may_have_half_of_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = limit(monkeypatch, 64, 1_024)

    assert most_processes(has_keys=False) == 448
    assert limits.now == (1_024, 1_024)
    most = most_processes(has_keys=True)

    assert most == 224
    assert PER_PROCESS * most <= connection_limit()
    limit(monkeypatch, 1_024, 1 << 20)
    assert PER_PROCESS * most_processes(has_keys=True) <= MAX_CONNECTIONS
