"""The driver's decisions over nodes that are scripts: no Ray, no processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import ExitCode
from common.ids import peer_id
from launch.fleet.fleet import Fleet, FleetNode
from launch.fleet.gathering import Gathering, Pieces
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
        self.busy_calls = 0
        """For so many calls it is still as it was."""

    def running(self) -> list[object]:
        return [row["name"] for row in self.report.rows]

    def tend(self, orders: Orders) -> Report | None:
        require_plain(orders.to_plain())
        self.told.append(orders)
        if self.is_silent:
            return None
        if self.busy_calls > 0:
            self.busy_calls -= 1
            return self.report
        names = [peer_id("actor", index) for index in orders.actors]
        rows = [{"name": n, "state": "running", "restarts": 0, "beat": {}} for n in names]
        begun = self.report.begun or orders.begin is not None
        self.report = replace(
            self.report, begun=begun, rows=list(rows) if begun else [], stopped=orders.finish
        )
        return self.report

    def read_files(self, root: str, offsets: dict[str, int]) -> Pieces | None:
        has_all = "logs/actor-0.log" in offsets
        return {} if has_all else {"logs/actor-0.log": f"{root}\n".encode()}

    def finish(self, orders: Orders, timeout_s: float) -> Report | None:
        assert timeout_s > 0
        return self.tend(orders)

    def remove_files(self, root: str) -> None:
        self.removed = root

    def close(self) -> None:
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


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, 4, 2, 2)
    stage.tick()
    return stage


def test_every_node_begins_once_and_gets_its_actors(stage: Stage) -> None:
    assert stage.actors() == {"n0": [0, 1], "n1": [2, 3], "n2": [4, 5]}
    begins = [[o.begin for o in link.told if o.begin] for link in stage.cluster.links.values()]
    assert [len(one) for one in begins] == [1, 1, 1]
    assert [one[0].is_home for one in begins] == [True, False, False]
    assert {row.name for row in stage.fleet.rows()} == {f"actor-{i}" for i in range(6)}


def test_a_node_that_is_gone_takes_only_its_actors_along(stage: Stage) -> None:
    lost = stage.cluster.links.pop("n1")
    stage.cluster.present = [stage.cluster.present[0], stage.cluster.present[2]]

    stage.tick()

    assert stage.actors() == {"n0": [0, 1], "n2": [2, 3]}
    assert (stage.home.totals[-1], stage.home.gone) == (4, ["node-n1"])
    assert lost.is_closed
    assert "node-n1 (10.0.0.1) is gone" in stage.fleet.news


def test_a_node_that_comes_gets_actors_and_the_others_keep_theirs(stage: Stage) -> None:
    stage.cluster.present = [*stage.cluster.present, stage.cluster.facts(3, 3)]

    stage.tick()

    assert stage.actors() == {"n0": [0, 1], "n1": [2, 3], "n2": [4, 5], "n3": [6, 7, 8]}
    assert stage.home.totals[-1] == 9


def test_an_actor_that_moves_never_plays_at_two_places(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 4, 2, wish=ActorWish(actors=4))
    stage.tick()
    assert stage.actors() == {"n0": [0, 1], "n1": [2, 3]}
    stage.cluster.present = [*stage.cluster.present, stage.cluster.facts(2, 4)]
    for link in stage.cluster.links.values():
        link.busy_calls = 3

    for _ in range(8):
        stage.tick(times=1)
        running = [name for link in stage.cluster.links.values() for name in link.running()]
        assert len(running) == len(set(running))

    assert sorted(map(str, running)) == ["actor-0", "actor-1", "actor-2", "actor-3"]
    assert len(stage.actors()["n2"]) == 2


def test_more_or_fewer_on_request(stage: Stage) -> None:
    stage.fleet.scale(3)
    stage.tick()

    told = sorted(index for indices in stage.actors().values() for index in indices)
    assert told == [0, 1, 2]
    assert stage.home.totals[-1] == 3


def test_a_supervisor_that_forgot_everything_begins_again(stage: Stage) -> None:
    home = stage.cluster.links["n0"]
    home.report = Report()
    stage.fleet.nodes["n0"].report = Report()

    stage.tick()

    begins = [orders.begin for orders in home.told if orders.begin is not None]
    assert [begin.resume for begin in begins] == ["first", "again"]
    assert stage.fleet.outcome is None


def test_what_ends_the_home_ends_the_run(stage: Stage) -> None:
    link = stage.cluster.links["n0"]
    link.report = replace(link.report, outcome=0, reason="the budget is used up")

    stage.tick()

    assert stage.fleet.outcome is ExitCode.DONE


def test_a_node_with_a_problem_gets_no_actors(stage: Stage) -> None:
    link = stage.cluster.links["n1"]
    link.report = replace(link.report, outcome=2, reason="no room on the disk")

    stage.tick()

    assert stage.fleet.outcome is None
    assert stage.actors() == {"n0": [0, 1], "n1": [], "n2": [2, 3]}
    assert "node-n1 gets no actors: no room on the disk" in stage.fleet.news


def test_a_node_that_cannot_reach_the_servers_is_told_nothing(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 4, 2)
    stage.home.unwanted = "n1"

    stage.tick()

    assert stage.cluster.links["n1"].told == []
    assert stage.cluster.links["n0"].told[-1].actors == [0, 1]


@pytest.mark.parametrize(("name", "outcome"), [("n1", None), ("n0", ExitCode.TEMPORARY)])
def test_a_node_that_never_answers_is_given_up(
    tmp_path: Path, name: str, outcome: ExitCode | None
) -> None:
    stage = Stage(tmp_path, 4, 2)
    stage.cluster.silent = name

    stage.tick()
    assert stage.fleet.total == 4
    stage.clock.advance(120.0)
    stage.tick()

    assert stage.fleet.outcome is outcome
    if outcome is None:
        assert stage.actors()["n0"] == [0, 1]
        assert stage.fleet.total == 2
    else:
        assert "it does not answer" in stage.fleet.reason


@pytest.mark.parametrize(
    ("code", "outcome"), [(2, ExitCode.CONFIGURATION), (75, ExitCode.TEMPORARY)]
)
def test_too_few_actors_that_can_be_kept_alive_end_the_run(
    stage: Stage, code: int, outcome: ExitCode
) -> None:
    stage.home.min_actors = 6
    link = stage.cluster.links["n1"]
    link.report = replace(link.report, off=[["actor-2", code, "exit code 75"]])

    stage.tick()

    assert stage.fleet.outcome is outcome
    assert "only 5 of 6 actors can be kept alive; actor-2" in stage.fleet.reason


def test_without_room_the_run_waits_for_nodes(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 2, 2)
    stage.tick()
    stage.cluster.present = stage.cluster.present[:1]
    stage.home.min_actors = 2

    stage.tick()

    assert stage.fleet.outcome is None
    assert "room for 1 actors only: waiting for nodes" in stage.fleet.news
    assert stage.home.totals == [2]


def test_lives_are_younger_than_those_of_a_clock_that_is_ahead(stage: Stage) -> None:
    ahead = 2**62
    link = stage.cluster.links["n1"]
    link.report = replace(link.report, incarnation=ahead)

    stage.tick()

    assert stage.cluster.links["n2"].told[-1].floor == ahead


def test_at_the_end_all_are_told_and_their_files_are_at_home(stage: Stage, tmp_path: Path) -> None:
    stage.fleet.stop()

    assert all(link.told[-1].finish for link in stage.cluster.links.values())
    assert all(link.is_closed for link in stage.cluster.links.values())
    assert stage.cluster.links["n1"].removed == "/there/node-n1"
    assert "/there/node-n1" in (tmp_path / "logs/actor-0.log").read_text()
