"""A fleet over nodes that are scripts: no Ray, no processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from common.ids import peer_id
from launch.fleet.fleet import Fleet
from launch.fleet.fleet_node import FleetNode
from launch.fleet.gathering import Gathering, Marks, Pieces
from launch.fleet.orders import Begin, Orders, Report, require_plain
from launch.fleet.placement import ActorWish, NodeFacts
from tests.fake_clock import FakeClock


class ObedientNode:
    """Does at once what it is told, and answers at the next call."""

    def __init__(self, facts: NodeFacts) -> None:
        self.facts = facts
        self.told: list[Orders] = []
        self.report = Report()
        self.is_closed = False
        self.is_silent = False
        self.removed = self.text = ""
        self.forgotten = False
        self.files_take_calls = 0
        """So many calls later it answers for its files."""
        self.files_asked = 0
        self._files_in_calls = 0
        self.crashes = False
        """Whether its supervisor ends whenever it is told something."""
        self.ends_at_finish = False
        """Whether its supervisor ends when it is told to stop; the next one has nothing to stop."""
        self.is_foreign = False
        """Whether another commit is installed there, whose reports say more."""
        self.busy_calls = 0
        """For so many calls it is still as it was."""

    def running(self) -> list[object]:
        return [row["name"] for row in self.report.rows]

    def tend(self, orders: Orders) -> Report | None:
        assert not self.is_closed
        require_plain(orders.to_plain())
        self.told.append(orders)
        if self.is_silent:
            return None
        if self.ends_at_finish and orders.finish and self.report.begun:
            self.report = Report(is_lost=True)
            return self.report
        if self.busy_calls > 0:
            self.busy_calls -= 1
            return self.report
        names = [peer_id("actor", index) for index in orders.actors]
        rows = [{"name": n, "state": "running", "restarts": 0, "beat": {}} for n in names]
        begun = self.report.begun or orders.begin is not None
        self.report = replace(
            self.report, begun=begun, rows=list(rows) if begun else [], stopped=orders.finish
        )
        if self.crashes:
            self.report = Report(is_lost=True)
        if self.is_foreign:
            return Report.from_plain({**self.report.to_plain(), "mood": "fine"})
        return self.report

    def read_files(self, root: str, marks: Marks, *, is_last: bool = False) -> Pieces | None:
        assert not self.is_closed
        if self._files_in_calls == 0:
            self.files_asked += 1
            self._files_in_calls = self.files_take_calls + 1
        self._files_in_calls -= 1
        if self._files_in_calls > 0:
            return None
        content = f"{root}\n{self.text}".encode() + (b"its end\n" if is_last else b"")
        rest = content[marks.get("logs/actor-0.log", (1, 0))[1] :]
        return {"logs/actor-0.log": (1, rest)} if rest else {}

    def forget_files(self) -> None:
        self.forgotten = self.told[-1].finish

    def remove_files(self, root: str) -> None:
        self.removed = root

    def close(self) -> None:
        assert not self.is_closed
        self.is_closed = True


class ScriptedCluster:
    home = "n0"

    silent = ""

    def __init__(self, *cores: int) -> None:
        self.links: dict[str, ObedientNode] = {}
        self.present = [self.facts(index, count) for index, count in enumerate(cores)]

    def facts(self, index: int, cores: int) -> NodeFacts:
        return NodeFacts(node_id=f"n{index}", address="10.0.0.1", cores=cores)

    def nodes(self) -> Sequence[NodeFacts]:
        return self.present

    def open_node(self, facts: NodeFacts) -> ObedientNode:
        self.links[facts.node_id] = ObedientNode(facts)
        self.links[facts.node_id].is_silent = facts.node_id == self.silent
        return self.links[facts.node_id]


class NotedHome:
    min_actors = 1
    replay_shards = 1

    def __init__(self) -> None:
        self.totals: list[int] = []
        self.gone: list[str] = []
        self.unwanted = ""

    def begin(self, node: FleetNode) -> Begin:
        resume = "again" if node.has_begun else "first"
        return Begin(settings={}, number=node.number, is_home=node.is_home, resume=resume)

    def folder(self, node: FleetNode) -> str:
        return f"/there/{node.name}"

    def refusal(self, facts: NodeFacts) -> str:
        return "too far away" if facts.node_id == self.unwanted else ""

    def note_total(self, total: int) -> None:
        self.totals.append(total)

    def note_gone(self, node: FleetNode) -> None:
        self.gone.append(node.name)


class Stage:
    def __init__(self, folder: Path, *cores: int, wish: ActorWish | None = None) -> None:
        self.clock, self.home = FakeClock(), NotedHome()
        self.cluster = ScriptedCluster(*cores)
        gathering = Gathering(folder)
        self.fleet = Fleet(self.cluster, self.home, wish or ActorWish(), gathering, self.clock)

    def tick(self, times: int = 3) -> None:
        for _ in range(times):
            self.clock.advance(2.5)
            self.fleet.tick()

    def actors(self) -> dict[str, list[int]]:
        return {name: link.told[-1].actors for name, link in self.cluster.links.items()}
