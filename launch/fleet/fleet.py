"""All nodes as the driver sees them: who runs what, told again and again until it is so."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Protocol

from common.errors import ExitCode, PeerUnavailable
from common.ids import peer_id
from common.shards import shard_of
from launch.fleet.courier import Courier
from launch.fleet.ending import finish_all
from launch.fleet.fleet_node import FleetNode
from launch.fleet.gathering import Gathering
from launch.fleet.links import Cluster
from launch.fleet.orders import Begin, Orders, Report
from launch.fleet.placement import ActorWish, NodeFacts, assign, share_out
from launch.live_view import ProcessRow

log = logging.getLogger(__name__)

LOOK_INTERVAL_S = 2.0
"""Between two looks at the nodes that there are."""
STOP_DEADLINE_S = 20.0
"""For the actors of other nodes."""
HOME_STOP_DEADLINE_S = 110.0
"""For the learner's checkpoint and the last cut of a replay server."""


class RunHome(Protocol):
    """What the fleet needs to know of the run."""

    @property
    def min_actors(self) -> int: ...

    @property
    def replay_shards(self) -> int: ...

    def begin(self, node: FleetNode) -> Begin: ...

    def folder(self, node: FleetNode) -> str:
        """Of the run, on that node."""
        ...

    def refusal(self, facts: NodeFacts) -> str:
        """Why actors there could not take part; empty when they can."""
        ...

    def note_total(self, total: int) -> None:
        """So many actors there are from now on."""
        ...

    def note_gone(self, node: FleetNode) -> None: ...


class Fleet:
    """Call `tick` several times a second until `outcome` says how the run ended."""

    def __init__(
        self,
        cluster: Cluster,
        home: RunHome,
        wish: ActorWish,
        gathering: Gathering,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.nodes: dict[str, FleetNode] = {}
        self.wish = wish
        self.news: list[str] = []
        """Lines for the person at the terminal, who takes them out."""
        self.most: int | None = None
        """Actors for which the servers can open files, once the home has told."""
        self.outcome: ExitCode | None = None
        self.reason = ""
        self.blame: list[str] = []
        self._cluster = cluster
        self._home = home
        self._courier = Courier(gathering, home.folder, clock)
        self._clock = clock
        self._floor = 0
        self._numbers = 0
        self._look_s = clock()

    @property
    def least(self) -> int:
        """Actors without which there is no run."""
        return self._home.min_actors

    @property
    def total(self) -> int:
        return sum(len(node.actors) for node in self.nodes.values())

    def tick(self) -> None:
        now = self._clock()
        if now >= self._look_s:
            self._look_s = now + LOOK_INTERVAL_S
            self._look()
        for node in self._told():
            report = node.link.tend(self._orders(node))
            if report is not None:
                self._hear(node, report)
            if objection := node.objection(now):
                # Whatever it ran is gone or will be: others may take its actors.
                node.report = Report()
                self._give_up(node, objection)
        self._courier.fetch(self.nodes.values())
        self._judge()

    def scale(self, actors: int) -> None:
        self.wish = ActorWish(actors=actors, per_node=self.wish.per_node)
        self._lay_out()

    def rows(self) -> list[ProcessRow]:
        """Of all processes, those at home first."""
        rows: list[Any] = [row for node in self._in_order() for row in node.report.rows]
        return [ProcessRow(**row) for row in rows]

    def summary(self) -> list[str]:
        """Restarts and why, and what could not be brought home, for the end."""
        lines = [line for node in self._in_order() for line in node.report.summary]
        return [*lines, *self._courier.left]

    def stop(self) -> None:
        """Actors elsewhere first, then everything at home; the learner's end decides."""
        others = [node for node in self._told() if not node.is_home]
        home = [node for node in self.nodes.values() if node.is_home]
        stopped = finish_all(others, self._last_orders(), STOP_DEADLINE_S, self._clock)
        for node in (node for node in others if node not in stopped):
            log.warning("a node did not answer at the end", extra={"node": node.name})
            if node.has_begun:
                self._courier.leave(node)
        for node in finish_all(home, self._last_orders(), HOME_STOP_DEADLINE_S, self._clock):
            self._hear(node, node.report)
        self._judge_end(home)
        for node in stopped:
            self._courier.fetch_rest(node)
        for node in self.nodes.values():
            node.close()

    def _judge_end(self, home: Sequence[FleetNode]) -> None:
        """A supervisor that ended has not seen whether the learner saved: no good end is sure."""
        if any(node.has_begun and not node.report.begun for node in home):
            if self.outcome is ExitCode.DONE:
                self.outcome = None
            words = "the supervisor at home ended while it stopped everything"
            self._end(ExitCode.TEMPORARY, f"{words}; --resume goes on from the newest checkpoint")
        elif not all(node.report.stopped for node in home):
            self._end(ExitCode.TEMPORARY, "the home node did not answer at the end")

    def _in_order(self) -> Iterator[FleetNode]:
        yield from sorted(self.nodes.values(), key=lambda node: node.number)

    def _told(self) -> list[FleetNode]:
        """Those that get orders; one that could never take part is left alone."""
        return [node for node in self.nodes.values() if node.has_begun or not node.problem]

    def _look(self) -> None:
        """Nodes that have come, nodes that are gone; without who tells of them the run ends."""
        try:
            found = {facts.node_id: facts for facts in self._cluster.nodes()}
        except PeerUnavailable as error:
            log.error("the cluster is lost", extra={"error": str(error)})
            self._end(ExitCode.TEMPORARY, f"{error}; --resume goes on")
            return
        gone = [node for name, node in self.nodes.items() if name not in found]
        for node in gone:
            self._lose(node)
        if self.outcome is not None:
            return
        new = [facts for name, facts in found.items() if name not in self.nodes]
        for facts in new:
            self._add(facts)
        if gone or new:
            self._lay_out()

    def _lose(self, node: FleetNode) -> None:
        del self.nodes[node.facts.node_id]
        node.close()
        self._home.note_gone(node)
        log.warning("node gone", extra={"node": node.name, "actors": len(node.actors)})
        words = f"{node.name} ({node.facts.address}) is gone"
        self.news.append(words)
        if node.is_home:
            self._end(ExitCode.TEMPORARY, f"{words}, and with it the servers; --resume goes on")
        elif node.has_begun:
            self._courier.leave(node)

    def _add(self, facts: NodeFacts) -> None:
        is_home = facts.node_id == self._cluster.home
        self._numbers += 1
        node = FleetNode(
            facts=facts,
            link=self._cluster.open_node(facts),
            number=self._numbers,
            is_home=is_home,
            well_s=self._clock(),
            problem="" if is_home else self._home.refusal(facts),
        )
        self.nodes[facts.node_id] = node
        log.info("node found", extra={"node": node.name, "cores": facts.cores})
        where = f"{node.name} ({facts.address}, {facts.cores} cores)"
        self.news.append(f"{where}: {node.problem or 'takes part'}")

    def _lay_out(self) -> None:
        """Who plays where from now on."""
        usable = {name: node for name, node in self.nodes.items() if not node.problem}
        facts = [node.facts for node in usable.values()]
        shares = self._shares(facts)
        before, told = {name: node.actors for name, node in usable.items()}, self.total
        assignment = assign(shares, before)
        for name, node in self.nodes.items():
            node.actors = assignment.get(name, ())
        if self.total != told:
            log.info("actors laid out", extra={"actors": self.total, "nodes": len(usable)})
        if self.total >= self._home.min_actors:
            self._home.note_total(self.total)
        else:
            self.news.append(f"room for {self.total} actors only: waiting for nodes")

    def _shares(self, facts: Sequence[NodeFacts]) -> dict[str, int]:
        shares = share_out(facts, self._cluster.home, self.wish)
        if self.most is None or sum(shares.values()) <= self.most:
            return shares
        self.news.append(f"{self.most} actors at most: the home can open no more files")
        wish = ActorWish(actors=self.most, per_node=self.wish.per_node)
        return share_out(facts, self._cluster.home, wish)

    def _orders(self, node: FleetNode) -> Orders:
        """An actor that moves begins at its new place when it has ended at the old one."""
        others = (other for other in self.nodes.values() if other is not node)
        elsewhere = {str(row["name"]) for other in others for row in other.report.rows}
        is_ready = node.report.begun or bool(node.problem)
        return Orders(
            actors=[i for i in node.actors if peer_id("actor", i) not in elsewhere],
            total=max(self.total, self._home.min_actors),
            floor=max(self._floor, time.time_ns()),
            begin=None if is_ready else self._home.begin(node),
        )

    def _last_orders(self) -> Orders:
        return Orders(actors=[], total=max(self.total, 1), floor=self._floor, finish=True)

    def _hear(self, node: FleetNode, report: Report) -> None:
        node.hear(report, self._clock())
        if node.is_home and report.most_actors is not None:
            self.most = report.most_actors
        self._floor = max(self._floor, report.incarnation)
        self.news += [f"{line} ({node.name})" for line in report.news]
        if report.outcome is None:
            return
        if node.is_home:
            self.blame = self.blame or report.blame
            self._end(ExitCode(report.outcome), report.reason)
        else:
            self._give_up(node, report.reason)

    def _give_up(self, node: FleetNode, reason: str) -> None:
        """Without the home there is no run; without another node there are fewer actors."""
        if node.is_home:
            self._end(ExitCode.TEMPORARY, f"{node.name}: {reason}")
        elif not node.problem:
            node.problem = reason
            log.error("node without actors", extra={"node": node.name, "reason": reason})
            self.news.append(f"{node.name} gets no actors: {reason}")
            if not node.has_begun:
                self._shut_out(node)
            self._lay_out()

    def _shut_out(self, node: FleetNode) -> None:
        """Its first orders may still be on their way, with actors that others have now."""
        node.close()
        self._home.note_gone(node)

    def _judge(self) -> None:
        """The run can go on without some of its actors."""
        off = [one for node in self.nodes.values() for one in node.report.off]
        usable = self._usable({str(name) for name, _, _ in off})
        if off and usable < self._home.min_actors:
            name, code, reason = off[-1]
            refused = code == ExitCode.CONFIGURATION
            why = "refused its settings" if refused else reason
            outcome = ExitCode.CONFIGURATION if refused else ExitCode.TEMPORARY
            words = f"only {usable} of {self.total} actors can be kept alive"
            self._end(outcome, f"{words}; {name}: {why}")

    def _usable(self, off: Collection[str]) -> int:
        """Actors that can play; one whose replay server is off waits as long as the run lasts."""
        shards = self._home.replay_shards
        lost = {shard for shard in range(shards) if peer_id("replay_server", shard) in off}
        names = [peer_id("actor", i) for node in self.nodes.values() for i in node.actors]
        has_server = [not lost or shard_of(name, shards) not in lost for name in names]
        return sum(ok and name not in off for name, ok in zip(names, has_server, strict=True))

    def _end(self, outcome: ExitCode, reason: str) -> None:
        if self.outcome is None:
            self.outcome, self.reason = outcome, reason
