from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from common.config import EndpointSettings, RunSettings, Settings
from common.errors import PeerUnavailable
from common.lifecycle import StopFlag
from common.messages import ControlReply, ControlRequest
from common.run_paths import RunPaths
from common.settings_files import load_settings
from launch import learner_control
from launch.fleet import home as home_module
from launch.fleet.fleet_node import FleetNode
from launch.fleet.home import FleetHome
from launch.fleet.node_keys import NodeKeys
from launch.fleet.placement import NodeFacts
from launch.run_dir import make_run_dir, write_config
from launch.session import Session

HERE = NodeFacts(node_id="aaaaaaaaaaaa", address="10.0.0.1", cores=4)
THERE = NodeFacts(node_id="bbbbbbbbbbbb", address="10.0.0.2", cores=4)


def node(facts: NodeFacts) -> FleetNode:
    link: Any = None
    return FleetNode(facts=facts, link=link, number=2, is_home=facts is HERE)


def make_home(folder: Path, *, host: str = "10.0.0.1", has_keys: bool = True) -> FleetHome:
    run = RunSettings(run="far", runs_dir=str(folder))
    paths = RunPaths.of(run)
    make_run_dir(paths)
    keys = NodeKeys(paths.keys) if has_keys else None
    names = ("replay", "weights", "telemetry", "control")
    endpoints = EndpointSettings(
        **{f"{name}_endpoint": f"tcp://{host}:{5601 + i}" for i, name in enumerate(names)},
        keys_dir=str(paths.keys) if has_keys else "",
    )
    settings = Settings(run=run, endpoints=endpoints)
    write_config(paths, settings)
    session = Session(
        settings=settings,
        paths=paths,
        console=Console(quiet=True),
        stop=StopFlag(),
        plain=True,
        resume=None,
    )
    return FleetHome(session=session, address="10.0.0.1", node_dir="~/nodes", keys=keys, stamp="S")


@pytest.fixture
def home(tmp_path: Path) -> FleetHome:
    return make_home(tmp_path)


def test_the_home_has_the_servers_and_the_run_folder(home: FleetHome, tmp_path: Path) -> None:
    begin = home.begin(node(HERE))

    assert (begin.is_home, begin.keys, begin.resume) == (True, {}, "none")
    assert begin.settings["run"]["runs_dir"] == str(tmp_path)
    assert begin.settings["endpoints"]["keys_dir"] == str(tmp_path / "far/keys")


def test_a_home_that_begins_again_goes_on_from_what_is_saved_until_then(home: FleetHome) -> None:
    again = node(HERE)
    again.has_begun = True

    assert home.begin(again).resume == "auto"


def test_another_node_has_a_folder_and_a_key_of_its_own(home: FleetHome) -> None:
    begin = home.begin(node(THERE))

    assert begin.settings["run"]["runs_dir"] == "~/nodes/S-node-bbbbbbbb"
    assert begin.settings["run"]["run"] == "far"
    assert begin.settings["endpoints"]["keys_dir"] == "~/nodes/S-node-bbbbbbbb/far/keys"
    assert home.folder(node(THERE)) == "~/nodes/S-node-bbbbbbbb/far"
    assert begin.settings["endpoints"]["replay_endpoint"] == "tcp://10.0.0.1:5601"
    assert set(begin.keys) == {"client.key", "server.pub"}
    assert home.keys is not None
    assert "node-bbbbbbbb" in home.keys.folder.allowed().names.values()


def test_the_key_of_a_node_ends_with_it(home: FleetHome) -> None:
    home.begin(node(THERE))

    home.note_gone(node(THERE))

    assert home.keys is not None
    assert "node-bbbbbbbb" in home.keys.folder.allowed().revoked.values()


def test_sockets_of_one_machine_are_no_use_to_another(tmp_path: Path) -> None:
    home = make_home(tmp_path, host="127.0.0.1", has_keys=False)

    assert home.refusal(HERE) == ""
    assert "set [cluster] host" in home.refusal(THERE)


class Learner:
    """Answers from the second question on."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, float]] = []

    def __call__(self, _: Settings, request: ControlRequest, timeout_s: float) -> ControlReply:
        assert timeout_s > 0
        self.asked.append((request.name, request.value))
        if len(self.asked) == 1:
            raise PeerUnavailable("not yet")
        return ControlReply(request_id=request.request_id, accepted=True, text="")


def test_those_who_start_and_those_who_play_are_told_the_number(
    home: FleetHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner()
    monkeypatch.setattr(learner_control, "ask_learner", learner)
    monkeypatch.setattr(home_module, "TELL_AGAIN_S", 0.0)
    actor = replace(home.session.settings.actor, envs_per_actor=2)
    home.session.settings = replace(home.session.settings, actor=actor)

    home.note_total(8)
    home.tell_learner()
    assert learner.asked == []

    home.note_total(5)
    for _ in range(3):
        home.tell_learner()

    assert learner.asked == [("environments", 10.0)] * 2
    assert load_settings(home.session.paths.config).actor.actors == 5
