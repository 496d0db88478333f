"""A program as the driver of its loop sees it: the same for a process and for lockstep."""

from __future__ import annotations

import logging
from typing import Protocol

from common.lifecycle import StopFlag

log = logging.getLogger(__name__)


class Component(Protocol):
    """Made by a package's `assembly.build`."""

    @property
    def is_done(self) -> bool:
        """Whether its work is finished for good."""
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


def run_component(component: Component, stop: StopFlag, *, finish_deadline_s: float) -> int:
    """Drive a program until a signal, its own end or the loss of its parent; its exit code."""
    try:
        while not (stop.is_set() or component.is_done):
            component.tick()
            if stop.orphaned():
                log.warning("the launcher is gone, stopping")
                break
        component.finish(finish_deadline_s)
    finally:
        component.close()
    return int(stop.exit_code)
