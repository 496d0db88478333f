"""Whether the system lets the launcher open as many files as a run needs."""

from __future__ import annotations

import contextlib
import resource
import sys

from common.errors import ConfigError
from common.keys import MAX_CONNECTIONS

RESERVE = 128
"""Libraries, logs, checkpoints and the moments in which a process is started."""
PER_PROCESS = 2
"""The learner has two connections to each; the launcher one pipe."""


def ensure_open_files(processes: int) -> None:
    """Raise the limit as far as the system allows; refuse a run that does not fit below it."""
    needed = RESERVE + PER_PROCESS * processes
    soft = raised_limit(needed)
    if not _allows(soft, needed):
        raise ConfigError(
            f"{processes} processes need {needed} open files, and this shell allows {soft}; "
            "use fewer --actors with more --envs-per-actor, or raise it with ulimit -n"
        )


def most_processes(*, has_keys: bool) -> int:
    """That can be connected with one of ours, with the limit as high as the system allows.

    With keys a program lets connections have half of its files (common.transport_guard).
    """
    soft = raised_limit(sys.maxsize)
    limit = sys.maxsize if soft == resource.RLIM_INFINITY else soft
    if has_keys:
        return (min(MAX_CONNECTIONS, limit // 2) - RESERVE // 2) // PER_PROCESS
    return (limit - RESERVE) // PER_PROCESS


def raised_limit(needed: int) -> int:
    """The limit, after it was raised as far as it goes if that many files need it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if _allows(soft, needed):
        return soft
    with contextlib.suppress(OSError, ValueError):
        # The programs inherit it.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return soft


def require_connections(actors: int) -> None:
    """For a swarm: a server takes connections only for half of the files that it may open."""
    needed = RESERVE + 2 * actors
    soft = raised_limit(needed)
    if not _allows(soft, needed):
        raise ConfigError(
            f"{actors} actors need {needed} open files, and the hard limit here is {soft}; "
            "use fewer --actors, or raise it with ulimit -Hn as root"
        )


def _allows(limit: int, needed: int) -> bool:
    return limit == resource.RLIM_INFINITY or limit >= needed
