"""Brings the files of all nodes home: a little every second, the rest at the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from launch.fleet.ending import Clock, bring_home
from launch.fleet.fleet_node import FleetNode
from launch.fleet.gathering import Gathering

log = logging.getLogger(__name__)

ASK_INTERVAL_S = 1.0
"""Between two questions to one node."""


class Courier:
    """Call `fetch` several times a second, then `fetch_rest` or `leave` for every node."""

    def __init__(
        self, gathering: Gathering, folder: Callable[[FleetNode], str], clock: Clock
    ) -> None:
        self.left: list[str] = []
        """Where files stayed, for the end."""
        self._gathering = gathering
        self._folder = folder
        self._clock = clock
        self._ask_s: dict[str, float] = {}
        """When each node is asked next."""
        self._awaited: set[str] = set()
        """Nodes that have not answered yet."""

    def fetch(self, nodes: Iterable[FleetNode]) -> None:
        """An answer is taken as soon as it is there: the next question need not wait for it."""
        now = self._clock()
        for node in nodes:
            is_asked = node.facts.node_id in self._awaited
            is_due = is_asked or now >= self._ask_s.get(node.facts.node_id, now)
            if is_due and node.report.begun and not node.is_home:
                if not is_asked:
                    self._ask_s[node.facts.node_id] = now + ASK_INTERVAL_S
                self._ask(node)

    def fetch_rest(self, node: FleetNode) -> None:
        """Of a node that has stopped, as far as it comes in time; whole ones are removed there."""
        folder = self._folder(node)
        if bring_home(node, folder, self._gathering, self._clock):
            node.link.remove_files(folder)
        else:
            self.leave(node)

    def leave(self, node: FleetNode) -> None:
        """Whoever wants to see what is missing at home has to know where it is."""
        folder = self._folder(node)
        log.warning("files stay on their node", extra={"node": node.name, "folder": folder})
        where = f"{node.name} ({node.facts.address}): {folder}"
        self.left.append(f"not all files are at home; they stay on {where}")

    def _ask(self, node: FleetNode) -> None:
        name = node.facts.node_id
        pieces = node.link.read_files(self._folder(node), self._gathering.marks(name))
        if pieces is None:
            self._awaited.add(name)
        else:
            self._awaited.discard(name)
            self._gathering.take(name, pieces)
