"""A program as the driver of its loop sees it: the same for a process and for lockstep."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

from common.lifecycle import StopFlag
from common.pulse import Pulse

log = logging.getLogger(__name__)

TELL_AFTER_S = 2.0
TELL_AGAIN_AFTER_S = 60.0


class Component(Protocol):
    """Made by a package's `assembly.build`."""

    @property
    def is_done(self) -> bool:
        """Whether its work is finished for good."""
        ...

    def waits_for(self) -> str | None:
        """Whom it waits for, in words, or None while it works."""
        ...

    def tick(self) -> bool:
        """Do a bounded piece of work, waiting at most a moment; True when there was work."""
        ...

    def finish(self, deadline_s: float) -> None:
        """Save what must not be lost, within the deadline."""
        ...

    def close(self) -> None:
        """Release everything; may be called after any error."""
        ...


class WaitLog:
    """Says whom a process waits for: when it has waited a while, then once a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_s: float | None = None

    def note(self, waits_for: str | None) -> None:
        now = self._clock()
        if waits_for is None:
            self._next_s = None
        elif self._next_s is None:
            self._next_s = now + TELL_AFTER_S
        elif now >= self._next_s:
            self._next_s = now + TELL_AGAIN_AFTER_S
            log.info("waiting", extra={"for": waits_for})


def run_component(
    component: Component, stop: StopFlag, *, finish_deadline_s: float, pulse: Pulse | None = None
) -> int:
    """Drive a program until a signal, its own end or the loss of its parent; its exit code."""
    waiting, pulse = WaitLog(), pulse or Pulse(None)
    try:
        while not (stop.is_set() or component.is_done):
            component.tick()
            pulse.turn()
            waiting.note(component.waits_for())
            if stop.orphaned():
                log.warning("the launcher is gone, stopping")
                break
        component.finish(finish_deadline_s)
    finally:
        component.close()
    return int(stop.exit_code)
