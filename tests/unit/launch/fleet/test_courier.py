"""Files of nodes that are scripts: when they are asked for, and what is said of those that stay."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from launch.fleet.ending import BRING_DEADLINE_S
from launch.fleet.fleet import STOP_DEADLINE_S
from launch.fleet.gathering import MOST_FILE_BYTES
from tests.scripted_fleet import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, 4, 2, 2)
    stage.tick()
    return stage


def test_at_the_end_all_are_told_and_their_files_are_at_home(stage: Stage, tmp_path: Path) -> None:
    stage.fleet.stop()

    assert all(link.told[-1].finish for link in stage.cluster.links.values())
    assert all(link.is_closed for link in stage.cluster.links.values())
    assert stage.cluster.links["n1"].removed == "/there/node-n1"
    text = (tmp_path / "logs/actor-0.log").read_text()
    assert ("/there/node-n1\n" in text, text.count("its end\n")) == (True, 2)
    assert stage.cluster.links["n1"].forgotten


def test_nodes_that_are_dead_at_the_end_are_waited_for_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, 4, 2, 2, 2)
    stage.tick()
    monkeypatch.setattr(time, "sleep", stage.clock.advance)
    for name in ("n1", "n2"):
        stage.cluster.links[name].is_silent = True
    began_s = stage.clock()

    stage.fleet.stop()

    assert stage.clock() - began_s < STOP_DEADLINE_S + BRING_DEADLINE_S
    assert stage.cluster.links["n3"].removed == "/there/node-n3"
    assert stage.cluster.links["n1"].removed == ""


def test_what_is_not_whole_at_home_stays_on_its_node(stage: Stage, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "actor-0.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("ab") as file:
        file.truncate(MOST_FILE_BYTES)
    for link in stage.cluster.links.values():
        link.text = "one more line"
    stage.tick()

    stage.fleet.stop()

    assert [link.removed for link in stage.cluster.links.values()] == ["", "", ""]
    assert "they stay on node-n1 (10.0.0.1): /there/node-n1" in stage.fleet.summary()[-2]


def test_an_answer_is_taken_when_it_comes_and_the_next_question_keeps_its_time(
    stage: Stage,
) -> None:
    link = stage.cluster.links["n1"]
    link.files_take_calls = 3
    asked_before = link.files_asked

    for _ in range(100):
        stage.clock.advance(0.1)
        stage.fleet.tick()

    assert 9 <= link.files_asked - asked_before <= 11


def test_of_a_node_that_was_lost_the_end_says_where_its_files_are(stage: Stage) -> None:
    stage.cluster.present = stage.cluster.present[:2]
    stage.tick()

    stage.fleet.stop()

    assert stage.fleet.summary() == [
        "not all files are at home; they stay on node-n2 (10.0.0.1): /there/node-n2"
    ]


@pytest.mark.parametrize("has_begun", [True, False])
def test_of_a_node_that_is_silent_at_the_end_too_if_it_had_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_begun: bool
) -> None:
    stage = Stage(tmp_path, 4, 2)
    stage.cluster.silent = "" if has_begun else "n1"
    stage.tick()
    monkeypatch.setattr(time, "sleep", stage.clock.advance)
    stage.cluster.links["n1"].is_silent = True

    stage.fleet.stop()

    said = ["not all files are at home; they stay on node-n1 (10.0.0.1): /there/node-n1"]
    assert stage.fleet.summary() == (said if has_begun else [])
