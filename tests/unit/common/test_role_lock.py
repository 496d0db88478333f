from __future__ import annotations

import os
from pathlib import Path

import pytest

from common import role_lock
from common.errors import ConfigError
from common.lifecycle import ORPHAN_GRACE_S, PARENT_PID_VARIABLE
from common.role_lock import sole_role
from common.run_paths import RunPaths


def test_a_second_learner_of_a_run_is_refused_and_told_who_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(role_lock, "GLANCE_S", 0.0)
    paths = RunPaths(tmp_path / "first")

    with sole_role(paths, "learner"), sole_role(paths, "replay_server"):
        expected = f"run 'first' has a learner already: process {os.getpid()}; stop it"
        with pytest.raises(ConfigError, match=expected), sole_role(paths, "learner"):
            pass


def test_actors_and_learners_of_other_runs_are_not_held_up(tmp_path: Path) -> None:
    paths = RunPaths(tmp_path / "first")

    other = RunPaths(tmp_path / "second")
    with (
        sole_role(paths, "actor"),
        sole_role(paths, "actor"),
        sole_role(paths, "learner"),
        sole_role(other, "learner"),
    ):
        pass

    with sole_role(paths, "learner"):
        pass


def test_replay_servers_and_learner_ranks_of_another_index_are_not_held_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(role_lock, "GLANCE_S", 0.0)
    paths = RunPaths(tmp_path / "first")

    with sole_role(paths, "replay_server"), sole_role(paths, "replay_server", 1):
        expected = "has a replay_server-1 already"
        with pytest.raises(ConfigError, match=expected), sole_role(paths, "replay_server", 1):
            pass


def test_under_a_launcher_there_is_time_for_an_orphan_to_save(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_hand_s = role_lock._patience_s()

    monkeypatch.setenv(PARENT_PID_VARIABLE, "1")

    assert role_lock._patience_s() >= by_hand_s + ORPHAN_GRACE_S
