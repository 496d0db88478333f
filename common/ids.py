"""Names and numbers that identify runs, processes and their lives."""

from __future__ import annotations

import os
import re
import time
from typing import Literal, NewType

from common.errors import ConfigError

RunId = NewType("RunId", str)
Role = Literal["actor", "evaluator", "replay_server", "learner", "relay", "controller", "launcher"]
Incarnation = NewType("Incarnation", int)
"""Grows with every start of a process, so that the newest life of a slot can be told from older."""
WeightVersion = NewType("WeightVersion", int)

RUN_NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
PEER_ID_PATTERN = re.compile(r"[a-z][a-z_]{0,31}-[0-9]{1,6}")


INCARNATION_VARIABLE = "WARPZONE_INCARNATION"
"""Set by the launcher, which lets lives grow even when the wall clock is set back."""


def new_incarnation() -> Incarnation:
    """The launcher's, or nanoseconds of the wall clock: ordered over hosts well enough."""
    given = os.environ.get(INCARNATION_VARIABLE, "")
    return Incarnation(int(given) if given.isdigit() else time.time_ns())


def later_incarnation(last: Incarnation) -> Incarnation:
    """Greater than the last one, whatever the wall clock says."""
    return Incarnation(max(time.time_ns(), last + 1))


def peer_id(role: Role, index: int) -> str:
    return f"{role}-{index}"


def check_run_name(name: str) -> str:
    """A run name is a single path component; anything else could leave the runs folder."""
    if RUN_NAME_PATTERN.fullmatch(name) is None or ".." in name:
        raise ConfigError(
            f"run name {name!r} is not usable: expected 1 to 64 letters, digits, '.', '_' or '-', "
            "starting with a letter or digit; choose another --run"
        )
    return name
