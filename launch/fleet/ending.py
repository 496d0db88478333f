"""The end of a run on many machines: everybody at once, and their files brought home."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from launch.fleet.fleet_node import FleetNode
from launch.fleet.gathering import Gathering
from launch.fleet.orders import Orders

BRING_DEADLINE_S = 5.0
GLANCE_S = 0.02

Clock = Callable[[], float]


def finish_all(
    nodes: Sequence[FleetNode], orders: Orders, timeout_s: float, clock: Clock
) -> list[FleetNode]:
    """Those that have stopped in the time, which is one for all: who is dead holds up nobody."""
    end_s = clock() + timeout_s
    waiting = list(nodes)
    while waiting:
        for node in waiting:
            # What was on its way to the node before comes first.
            node.report = node.link.tend(orders) or node.report
        waiting = [node for node in waiting if not node.report.stopped]
        if clock() >= end_s:
            break
        time.sleep(GLANCE_S)
    return [node for node in nodes if node.report.stopped]


def bring_home(node: FleetNode, folder: str, gathering: Gathering, clock: Clock) -> bool:
    """The rest of the files of a node that has stopped; whether all of them are whole at home."""
    name, end_s = node.facts.node_id, clock() + BRING_DEADLINE_S
    # An answer to what was asked before the stop does not tell what was written until then.
    node.link.forget_files()
    while clock() < end_s:
        pieces = node.link.read_files(folder, gathering.marks(name), is_last=True)
        if pieces is not None and not pieces:
            return gathering.is_whole(name)
        gathering.take(name, pieces or {})
        time.sleep(GLANCE_S)
    return False
