"""Where a process spends its time: seconds per named phase, as shares of an interval.

Phases may lie inside each other; time belongs to the innermost one, so shares never add up to
more than 1. What no phase claims is left over: the turns of the loop itself. All times are those
of one thread; what others do beside it takes nothing from it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

PHASES: Mapping[str, Mapping[str, str]] = {
    "actors": {
        "emulator": "emulator, rules and resets",
        "preprocessing": "pictures made gray and small, and stacked",
        "inference": "the network, batched over the environments",
        "blocks": "steps gathered into blocks, with their priorities",
        "encode": "blocks made into messages",
        "send": "sockets: blocks out, answers in",
        "weights": "new weights read and loaded",
        "wait": "nothing to do but wait",
    },
    "replay": {
        "decode": "messages read and checked",
        "insert": "blocks stored",
        "sample": "items drawn from the sum tree, returns and frame numbers found",
        "gather": "frames gathered into batches",
        "copy": "batches copied to the learner's device or memory",
        "update": "priorities set",
        "send": "answers made into messages and sent",
        "logging": "figures taken and told",
        "wait": "nothing to do but wait",
    },
    "learner": {
        "copy": "batches moved to the device",
        "forward": "networks and loss; on CUDA only until it is queued",
        "backward": "gradients; on CUDA only until they are queued",
        "optimizer": "clipping, step, running mean, copies to the target",
        "ranks": "gradients averaged with the other ranks, and waiting for these",
        "device": "results of an update read, which waits for the device",
        "priorities": "priorities sent, a batch asked for, or waiting for the second thread",
        "publish": "weights broadcast",
        "checkpoint": "state copied and handed to the writer",
        "logging": "figures written, and telemetry read where there is no second thread",
        "wait": "nothing to do but wait",
    },
}
"""Of every part of a run, with what happens in them."""
UPDATE_PHASES = ("forward", "backward", "optimizer", "device")
"""Those of the learner that are the update itself."""


def gap_share(shares: Mapping[str, float]) -> float:
    """Of a learner: the time in which its thread was not at an update, claimed or not."""
    return max(1.0 - sum(shares.get(phase, 0.0) for phase in UPDATE_PHASES), 0.0)


class _Phase:
    """The `with` block of one phase; made once, because it is entered thousands of times."""

    __slots__ = ("_name", "_timer")

    def __init__(self, timer: PhaseTimer, name: str) -> None:
        self._timer = timer
        self._name = name

    def __enter__(self) -> None:
        self._timer.enter(self._name)

    def __exit__(self, *_: object) -> None:
        self._timer.leave()


class PhaseTimer:
    """Adds up the time of each phase; `shares` reports and starts a new interval.

    It is the timer of the thread that entered a phase first: others may use the same code.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seconds: dict[str, float] = {}
        self._phases: dict[str, _Phase] = {}
        self._open: list[str] = []
        """Phases that we are in, the innermost last."""
        self._owner: int | None = None
        self._since = self._changed = clock()

    def phase(self, name: str) -> _Phase:
        known = self._phases.get(name)
        if known is None:
            known = self._phases[name] = _Phase(self, name)
            self._seconds.setdefault(name, 0.0)
        return known

    def enter(self, name: str) -> None:
        if self._is_ours():
            self._settle()
            self._open.append(name)

    def leave(self) -> None:
        if self._is_ours():
            self._settle()
            self._open.pop()

    def shares(self) -> dict[str, float]:
        """Share of the time since the last call that each phase took, 0 to 1."""
        self._settle()
        elapsed = max(self._changed - self._since, 1e-9)
        shares = {name: min(spent / elapsed, 1.0) for name, spent in self._seconds.items()}
        self._seconds = dict.fromkeys(self._seconds, 0.0)
        self._since = self._changed
        return shares

    def _is_ours(self) -> bool:
        if self._owner is None:
            self._owner = threading.get_ident()
        return self._owner == threading.get_ident()

    def _settle(self) -> None:
        """Give the time since the last change to the phase that we are in."""
        now = self._clock()
        if self._open:
            self._seconds[self._open[-1]] += now - self._changed
        self._changed = now
