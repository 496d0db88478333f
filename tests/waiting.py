"""Waiting for what happens elsewhere, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

from common.channels import Dealer, Router

DEADLINE_S = 30.0


def wait_until(what: str, condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> float:
    """Seconds until the condition held; fails with `what` when it does not in time."""
    began_s = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - began_s
        assert waited_s < deadline_s, f"{what}: not within {deadline_s} s"
        time.sleep(0.02)
    return time.monotonic() - began_s


def eventually(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    wait_until("it should have happened", condition, deadline_s)


def answers(router: Router, dealer: Dealer) -> bool:
    """Whether a question from the dealer is answered within a moment."""
    dealer.send([b"question"])
    arrival = router.receive(100)
    return (
        arrival is not None
        and router.send(arrival[0], [b"answer"])
        and dealer.receive(100) is not None
    )
