"""Whether the system lets the launcher open as many files as a run needs."""

from __future__ import annotations

import contextlib
import resource

from common.errors import ConfigError

RESERVE = 128
"""Libraries, logs, checkpoints and the moments in which a process is started."""
PER_PROCESS = 2
"""The learner has two connections to each; the launcher one pipe."""


def ensure_open_files(processes: int) -> None:
    """Raise the limit as far as the system allows; refuse a run that does not fit below it."""
    needed = RESERVE + PER_PROCESS * processes
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _allows(soft, needed):
        return
    with contextlib.suppress(OSError, ValueError):
        # The programs inherit it.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if not _allows(soft, needed):
        raise ConfigError(
            f"{processes} processes need {needed} open files, and this shell allows {soft}; "
            "use fewer --actors with more --envs-per-actor, or raise it with ulimit -n"
        )


def _allows(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed
