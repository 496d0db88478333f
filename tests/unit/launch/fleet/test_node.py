"""The supervisor of a node with programs that end at once: what it plans, writes and reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from common.config import EnvSettings, RunSettings, Settings
from common.file_lock import held_lock
from common.lifecycle import RESTARTED_VARIABLE
from common.run_paths import RunPaths
from common.settings_files import load_settings, settings_to_dict
from launch.child import Child
from launch.fleet import node as node_module
from launch.fleet.node import Node
from launch.fleet.node_supervisor import answer
from launch.fleet.orders import Begin, Orders, require_plain, to_line
from launch.plan import ProcessSpec
from launch.supervisor import Supervisor


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[ProcessSpec]:
    """What would have been started; nothing is."""
    found: list[ProcessSpec] = []

    def note(_: Supervisor, specs: list[ProcessSpec]) -> None:
        found.extend(specs)

    monkeypatch.setattr(Supervisor, "add", note)
    # The log of a node is that of its whole process.
    monkeypatch.setattr(node_module, "configure_logging", lambda *_: None)
    return found


def begin(folder: Path, *, is_home: bool, resume: str = "none") -> Begin:
    settings = Settings(
        run=RunSettings(run="r", runs_dir=str(folder), device="cpu"),
        env=EnvSettings(game="corridor", size=16),
    )
    if is_home:
        RunPaths.of(settings.run).root.mkdir(parents=True)
    return Begin(settings=settings_to_dict(settings), number=1, is_home=is_home, resume=resume)


def orders(first: Begin | None, *actors: int, total: int = 4) -> Orders:
    return Orders(actors=list(actors), total=total, floor=7, begin=first)


def test_the_home_starts_the_servers_first(started: list[ProcessSpec], tmp_path: Path) -> None:
    report = Node().obey(orders(begin(tmp_path, is_home=True, resume="none"), 0, 2))

    require_plain(report.to_plain())
    assert report.begun
    assert [spec.name for spec in started] == [
        "replay_server-0",
        "learner-0",
        "evaluator-0",
        "actor-0",
        "actor-2",
    ]
    assert not RunPaths(tmp_path / "r").config.exists()


def test_actors_of_another_node_have_their_weights_from_one_relay(
    started: list[ProcessSpec], tmp_path: Path
) -> None:
    node = Node()

    node.obey(orders(begin(tmp_path, is_home=False)))
    assert started == []
    node.obey(orders(None, 2, 3))

    relay, *actors = started
    downstream = relay.argv[relay.argv.index("--downstream") + 1]
    assert relay.argv[1:3] == ("-m", "launch.relay")
    assert [spec.restart_argv[-2:] for spec in actors] == [("--weights-endpoint", downstream)] * 2
    assert load_settings(tmp_path / "r/config.json").endpoints == Settings().endpoints
    folder = Path(downstream.removeprefix("ipc://")).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    node.stop()
    assert not folder.exists()


def test_a_home_without_files_for_all_actors_says_how_many_it_has_room_for(
    started: list[ProcessSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "most_processes", lambda *, has_keys: 8 + has_keys)

    report = Node().obey(orders(begin(tmp_path, is_home=True), 0, total=6))

    assert (report.begun, report.outcome, report.most_actors) == (False, 2, 5)
    assert "6 actors open more files than this machine allows, 5 do not" in report.reason
    assert started == []
    other = Node().obey(orders(begin(tmp_path / "other", is_home=False), 0, total=6))
    assert (other.begun, other.outcome) == (True, None)


def test_another_node_starts_actors_only_and_writes_their_settings(
    started: list[ProcessSpec], tmp_path: Path
) -> None:
    node = Node()
    node.obey(orders(begin(tmp_path, is_home=False), 3))
    assert load_settings(tmp_path / "r/config.json").actor.actors == 4

    node.obey(orders(None, 3, 5, total=6))

    assert {spec.name for spec in started} == {"relay-1", "actor-3", "actor-5"}
    assert load_settings(tmp_path / "r/config.json").actor.actors == 6


def test_a_home_that_goes_on_starts_as_after_a_crash(
    started: list[ProcessSpec], tmp_path: Path
) -> None:
    Node().obey(orders(begin(tmp_path, is_home=True, resume="auto")))

    learner = next(spec for spec in started if spec.role == "learner")
    assert learner.argv == learner.restart_argv
    assert learner.argv[-2:] == ("--resume", "auto")
    # A port that somebody took in between is a matter for another try, for every server.
    assert {spec.environment.get(RESTARTED_VARIABLE) for spec in started} == {"1"}


def test_orders_of_another_version_are_answered_and_not_followed(
    started: list[ProcessSpec], tmp_path: Path
) -> None:
    plain = {**orders(begin(tmp_path, is_home=True), 0).to_plain(), "mood": "fine"}

    report = answer(Node(), to_line(plain))

    assert (report.begun, report.outcome, started) == (False, 2, [])
    assert "is the same commit installed there? (" in report.reason


def test_orders_without_a_beginning_are_answered_and_not_followed(
    started: list[ProcessSpec],
) -> None:
    report = Node().obey(orders(None, 0))

    assert not report.begun
    assert started == []


def test_two_supervisors_never_have_one_folder(
    started: list[ProcessSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "SUCCESSION_S", 0.1)
    first = begin(tmp_path, is_home=True)
    lock = RunPaths(tmp_path / "r").role_lock("launcher")
    lock.parent.mkdir()

    with held_lock(lock, busy="held"):
        report = Node().obey(orders(first, 0))

    assert (report.begun, report.outcome) == (False, 2)
    assert "still has a supervisor" in report.reason
    assert started == []


def test_replay_servers_that_are_off_are_told_as_actors_are(
    started: list[ProcessSpec], tmp_path: Path
) -> None:
    node = Node()
    node.obey(orders(begin(tmp_path, is_home=True), 0))
    for spec in started:
        child = Child(spec)
        child.state, child.last_reason, child.exit_codes = "off", "exit code 1", [1]
        node._supervisor.children.append(child)

    report = node.obey(orders(None, 0))

    assert report.off == [[name, 1, "exit code 1"] for name in ("replay_server-0", "actor-0")]


def test_stacks_of_another_node_are_told_by_their_place_in_the_run(
    started: list[ProcessSpec], tmp_path: Path
) -> None:
    node = Node()
    node.obey(orders(begin(tmp_path, is_home=False), 0))
    child = Child(started[-1])
    child.last_dump = started[-1].diagnostics / "actor-0-7-stacks.txt"
    child.reasons["no progress"] += 1
    node._supervisor.children.append(child)
    node._supervisor.news.append(f"stacks in {child.last_dump}")

    report = node.obey(orders(None, 0))

    assert report.news == ["stacks in diagnostics/actor-0-7-stacks.txt"]
    (line,) = report.summary
    assert line.endswith("; last stacks in diagnostics/actor-0-7-stacks.txt")


def test_settings_that_do_not_fit_are_reported_in_words(tmp_path: Path) -> None:
    wrong = begin(tmp_path, is_home=True)
    wrong.settings["learner"]["batch_size"] = 0

    report = Node().obey(orders(replace(wrong, number=2), 0))

    assert report.outcome == 2
    assert "the driver: --batch-size" in report.reason
