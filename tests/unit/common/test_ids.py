from __future__ import annotations

import re

import pytest

from common.errors import ConfigError
from common.field_checks import field_checkers
from common.ids import PEER_ID_PATTERN, check_run_name, new_incarnation, peer_id
from common.messages import Heartbeat


def test_incarnations_grow() -> None:
    lives = [new_incarnation() for _ in range(100)]

    assert lives == sorted(lives)
    assert 0 < lives[0] < 2**63


@pytest.mark.parametrize("role", ["actor", "replay_server", "learner", "controller", "launcher"])
def test_peer_ids_fit_the_pattern_and_the_wire(role: str) -> None:
    name = peer_id(role, 999_999)  # type: ignore[arg-type]  # parametrised over the literals

    assert re.fullmatch(PEER_ID_PATTERN, name)
    assert field_checkers(Heartbeat)["peer"](name) == name


@pytest.mark.parametrize("name", ["a", "default", "2024-01-01_x.y", "x" * 64])
def test_usable_run_names_also_fit_the_wire(name: str) -> None:
    assert check_run_name(name) == name
    assert field_checkers(Heartbeat)["run_id"](name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", "a\\b", "-x", "_x", "a..b", "x" * 65, "a\n", "ü", "a\0"]
)
def test_run_names_that_could_leave_their_folder_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="--run"):
        check_run_name(name)
