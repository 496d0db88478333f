"""One learner and one replay server of each index per run: two would write over their files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from common.errors import ConfigError
from common.file_lock import held_lock
from common.ids import Role, peer_id
from common.lifecycle import ORPHAN_GRACE_S, PARENT_PID_VARIABLE
from common.run_paths import RunPaths

SOLE_ROLES: tuple[Role, ...] = ("learner", "replay_server")
"""Who saves something in the run folder."""
GLANCE_S = 0.5
"""The doctor takes a lock for a moment to see whether it is free."""


@contextmanager
def sole_role(paths: RunPaths, role: Role, index: int = 0) -> Iterator[None]:
    """Hold the role of this run; a second process is refused and told who has it."""
    if role not in SOLE_ROLES:
        yield
        return
    path = paths.role_lock(role, index)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot write to the run folder {paths.root}: {error.strerror}; "
            "choose another --runs-dir"
        ) from error
    name, who = repr(paths.root.name), peer_id(role, index) if index else role
    busy = f"run {name} has a {who} already: process {{pid}}; stop it, or choose another --run"
    with held_lock(path, busy=busy, wait_s=_patience_s()):
        yield


def _patience_s() -> float:
    """Under a launcher the last holder may be the orphan of a launcher that was killed."""
    return GLANCE_S + (ORPHAN_GRACE_S if PARENT_PID_VARIABLE in os.environ else 0.0)
