"""What the driver needs of a cluster, whatever the engine below it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from launch.fleet.gathering import Marks, Pieces
from launch.fleet.orders import Orders, Report
from launch.fleet.placement import NodeFacts


class NodeLink(Protocol):
    """The line to one node. Nothing waits: an answer is there at a later call."""

    def tend(self, orders: Orders) -> Report | None:
        """Send the orders unless others are on their way; the newest answer, once."""
        ...

    def read_files(self, root: str, marks: Marks, *, is_last: bool = False) -> Pieces | None:
        """The same for files of the node; the last time of one that has stopped."""
        ...

    def forget_files(self) -> None:
        """Leave a question for files that is on its way without an answer."""
        ...

    def remove_files(self, root: str) -> None: ...

    def close(self) -> None: ...


class Cluster(Protocol):
    """The machines that are there now."""

    @property
    def home(self) -> str:
        """The node on which we are ourselves."""
        ...

    def nodes(self) -> Sequence[NodeFacts]:
        """Those that are alive, the home first."""
        ...

    def open_node(self, facts: NodeFacts) -> NodeLink: ...
