from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

from common.errors import ConfigError
from common.lifecycle import PARENT_PID_VARIABLE
from common.ranks import STORE_VARIABLE
from common.run_paths import RunPaths
from launch.options import LocalArgs
from launch.plan import plan_processes
from launch.ranks import exit_code_of, rank_environment
from tests.lesson import changed
from tests.run_factory import corridor_settings

KILLED = -9


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ({}, 0),
        ({0: 75, 1: KILLED}, 137),
        ({0: 143, 1: KILLED}, 137),
        ({0: 75, 1: 2}, 2),
        ({0: 2, 1: 75}, 2),
        ({0: 75, 1: 143}, 75),
        ({1: 75}, 75),
    ],
)
def test_the_code_of_the_rank_that_ended_the_others_counts(
    codes: dict[int, int], expected: int
) -> None:
    assert exit_code_of(codes, was_asked=False) == expected


@pytest.mark.parametrize(
    ("codes", "expected"), [({0: 143, 1: 143}, 143), ({0: 75, 1: 143}, 75), ({1: 143}, 0)]
)
def test_asked_to_end_rank_0_says_whether_it_has_saved(
    codes: dict[int, int], expected: int
) -> None:
    assert exit_code_of(codes, was_asked=True) == expected


def test_ranks_meet_in_a_private_file_and_on_loopback_unless_told_otherwise() -> None:
    folder = Path("/folder")

    environment = rank_environment(folder, {"NCCL_SOCKET_IFNAME": "eth0"})

    assert environment[STORE_VARIABLE].startswith(str(folder))
    assert environment[PARENT_PID_VARIABLE] == str(os.getpid())
    assert environment["GLOO_SOCKET_IFNAME"].startswith("lo")
    assert environment["NCCL_SOCKET_IFNAME"] == "eth0"


def test_a_run_with_ranks_starts_their_launcher_in_place_of_the_learner(tmp_path: Path) -> None:
    settings = changed(corridor_settings(tmp_path), "learner", {"learner_ranks": 2})
    paths = RunPaths.of(settings.run)

    specs = plan_processes(settings, paths, resume="none")

    (learner,) = [spec for spec in specs if spec.role == "learner"]
    assert learner.argv[1:4] == ("-m", "launch.ranks", "2")
    assert learner.restart_argv[-2:] == ("--resume", "auto")
    assert learner.patience.turn_s == math.inf


@pytest.mark.parametrize("flag", ["lockstep", "auto_mem"])
def test_ranks_are_refused_where_one_learner_is_meant(tmp_path: Path, flag: str) -> None:
    settings = changed(corridor_settings(tmp_path), "learner", {"learner_ranks": 2})

    with pytest.raises(ConfigError, match="--learner-ranks is 2"):
        LocalArgs(settings=settings, **{flag: True})  # type: ignore[arg-type] # by name
