"""The driver's decisions over nodes that are scripts: no Ray, no processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from common.errors import ExitCode, PeerUnavailable
from common.shards import shard_of
from launch.fleet import fleet
from launch.fleet.fleet_node import BEGIN_DEADLINE_S, MOST_ENDS, RETURN_DEADLINE_S
from launch.fleet.orders import Report
from launch.fleet.placement import ActorWish, NodeFacts
from tests.scripted_fleet import Stage


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
    assert stage.actors() == {"n0": [0], "n1": [2], "n2": [1, 3]}


def test_more_or_fewer_on_request(stage: Stage) -> None:
    stage.fleet.scale(3)
    stage.tick()

    # Actor 1 moves: the share of its node became smaller.
    assert stage.actors() == {"n0": [0], "n1": [2], "n2": [1]}
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


@pytest.mark.parametrize("outcome", [None, 0])
def test_a_home_whose_supervisor_ends_while_it_stops_is_no_good_end(
    stage: Stage, outcome: int | None
) -> None:
    home = stage.cluster.links["n0"]
    home.report = replace(home.report, outcome=outcome)
    stage.tick()
    home.ends_at_finish = True

    stage.fleet.stop()

    assert stage.fleet.nodes["n0"].report.stopped
    assert stage.fleet.outcome is ExitCode.TEMPORARY
    assert "the supervisor at home ended while it stopped everything" in stage.fleet.reason


@pytest.mark.parametrize(("outcome", "expected"), [(None, None), (0, ExitCode.DONE)])
def test_a_home_that_stops_everything_ends_as_the_learner_says(
    stage: Stage, outcome: int | None, expected: ExitCode | None
) -> None:
    home = stage.cluster.links["n0"]
    home.report = replace(home.report, outcome=outcome)

    stage.fleet.stop()

    assert stage.fleet.outcome is expected


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


def test_a_node_that_begins_after_it_was_given_up_plays_with_nobody(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 4, 2, wish=ActorWish(actors=4))
    stage.cluster.silent = "n1"
    stage.tick()
    late = stage.cluster.links["n1"]
    stage.clock.advance(BEGIN_DEADLINE_S)
    stage.tick()

    # What was on its way to it comes only now: its warden is gone, and its key opens nothing.
    late.is_silent = False
    stage.tick()

    assert (late.is_closed, stage.home.gone) == (True, ["node-n1"])
    assert stage.cluster.links["n0"].running() == [f"actor-{index}" for index in range(4)]
    stage.fleet.stop()
    assert [orders for orders in late.told if orders.finish] == []


def test_a_node_with_another_commit_is_given_up_and_the_others_play(tmp_path: Path) -> None:
    stage = Stage(tmp_path, 4, 2)
    stage.fleet.tick()
    stage.cluster.links["n1"].is_foreign = True

    stage.tick()

    assert (stage.fleet.outcome, stage.fleet.total) == (None, 2)
    assert "is the same commit installed there?" in stage.fleet.nodes["n1"].problem
    assert {row.name for row in stage.fleet.rows()} == {"actor-0", "actor-1"}


def test_a_node_that_is_updated_while_the_run_ends_does_not_keep_the_home_from_saving(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "STOP_DEADLINE_S", 0.0)
    stage.cluster.links["n1"].is_foreign = True

    stage.fleet.stop()

    assert stage.cluster.links["n0"].told[-1].finish
    assert any("they stay on node-n1" in line for line in stage.fleet.summary())


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


@pytest.mark.parametrize(("min_actors", "outcome"), [(2, None), (5, ExitCode.TEMPORARY)])
def test_actors_whose_replay_server_is_lost_do_not_count(
    stage: Stage, min_actors: int, outcome: ExitCode | None
) -> None:
    stage.home.min_actors, stage.home.replay_shards = min_actors, 2
    waiting = sum(shard_of(f"actor-{index}", 2) == 1 for index in range(6))
    assert 2 <= waiting <= 4
    link = stage.cluster.links["n0"]
    link.report = replace(link.report, off=[["replay_server-1", 1, "exit code 1"]])

    stage.tick()

    assert stage.fleet.outcome is outcome
    if outcome is not None:
        words = f"only {6 - waiting} of 6 actors can be kept alive; replay_server-1: exit code 1"
        assert words in stage.fleet.reason


def test_a_home_that_is_gone_for_ray_ends_the_run(stage: Stage) -> None:
    stage.cluster.present = stage.cluster.present[1:]

    stage.tick()

    assert stage.fleet.outcome is ExitCode.TEMPORARY
    assert "node-n0 (10.0.0.1) is gone, and with it the servers" in stage.fleet.reason
    assert stage.home.totals == [6]


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


@pytest.mark.parametrize("has_begun", [True, False])
def test_a_node_whose_supervisor_ends_again_and_again_is_given_up(
    tmp_path: Path, has_begun: bool
) -> None:
    stage = Stage(tmp_path, 4, 2)
    if has_begun:
        stage.tick()
    stage.fleet.tick()
    stage.cluster.links["n1"].crashes = True

    stage.tick(MOST_ENDS - 2)
    assert stage.fleet.nodes["n1"].problem == ""
    stage.tick(2)

    assert "its supervisor ended 5 times in" in stage.fleet.nodes["n1"].problem
    assert stage.actors()["n0"] == [0, 1]
    assert stage.fleet.total == 2


def test_a_node_that_has_played_and_stays_silent_gives_its_actors_to_the_others(
    tmp_path: Path,
) -> None:
    stage = Stage(tmp_path, 4, 2, wish=ActorWish(actors=4))
    stage.tick()
    stage.cluster.links["n1"].is_silent = True

    stage.clock.advance(RETURN_DEADLINE_S - 10.0)
    stage.tick(1)
    assert stage.actors() == {"n0": [0, 1], "n1": [2, 3]}
    stage.clock.advance(20.0)
    stage.tick()

    assert "it does not answer" in stage.fleet.nodes["n1"].problem
    assert stage.actors()["n0"] == [0, 1, 2, 3]


def test_nodes_that_come_get_no_more_actors_than_the_home_can_hold(stage: Stage) -> None:
    home = stage.cluster.links["n0"]
    home.report = replace(home.report, most_actors=7)
    stage.tick(1)
    stage.cluster.present = [*stage.cluster.present, stage.cluster.facts(3, 3)]

    stage.tick()

    assert stage.fleet.total == 7
    assert "7 actors at most: the home can open no more files" in stage.fleet.news


def test_a_cluster_that_does_not_answer_any_more_ends_the_run_by_its_usual_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_lost() -> Sequence[NodeFacts]:
        raise PeerUnavailable("the head of Ray has not answered for 15 s")

    monkeypatch.setattr(stage.cluster, "nodes", be_lost)
    stage.cluster.links["n1"].is_silent = True
    monkeypatch.setattr(fleet, "STOP_DEADLINE_S", 0.0)

    stage.tick()
    stage.fleet.stop()

    assert stage.fleet.outcome is ExitCode.TEMPORARY
    assert stage.fleet.reason.startswith("the head of Ray has not answered")
    # The learner was told to save, and whoever wants the files of the others knows where they are.
    assert stage.cluster.links["n0"].told[-1].finish
    stayed = [line for line in stage.fleet.summary() if "they stay on" in line]
    assert len(stayed) == 1
    assert "/there/node-n1" in stayed[0]
