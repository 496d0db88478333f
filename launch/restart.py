"""Whether a process that ended is started again, and when: pure decisions."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from common.errors import ExitCode

SIGNAL_BASE = 128
FIRST_DELAY_S = 0.5
MAX_DELAY_S = 30.0
MAX_FRUITLESS_RESTARTS = 5


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Delays double with every start that achieved nothing."""

    first_delay_s: float = FIRST_DELAY_S
    max_delay_s: float = MAX_DELAY_S
    max_fruitless_restarts: int = MAX_FRUITLESS_RESTARTS


def may_restart(exit_code: int, fruitless_restarts: int, policy: RestartPolicy) -> bool:
    """A configuration error stays one however often we try; a crash loop ends."""
    if exit_code == ExitCode.CONFIGURATION:
        return False
    return fruitless_restarts < policy.max_fruitless_restarts


def restart_delay_s(fruitless_restarts: int, jitter: float, policy: RestartPolicy) -> float:
    """`jitter` in 0..1 spreads processes that died together; it adds up to half the delay."""
    delay = policy.first_delay_s * 2.0**fruitless_restarts
    return min(delay * (1.0 + 0.5 * jitter), policy.max_delay_s)


def describe_exit(exit_code: int) -> str:
    """In the words of the live view and of the summary."""
    try:
        return f"ended by {signal.Signals(exit_code - SIGNAL_BASE).name}"
    except ValueError:
        return f"exit code {exit_code}"
