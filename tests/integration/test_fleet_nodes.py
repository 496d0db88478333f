"""Nodes of a cluster without Ray: wardens of this process, real programs, keys on loopback."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from common.checkpoint_files import list_numbered, verify_checkpoint
from common.config import Settings
from common.jsonl import last_record, read_jsonl
from common.run_paths import RunPaths
from common.settings_files import load_settings, settings_to_dict
from launch.fleet.node_keys import NodeKeys
from launch.fleet.orders import Begin, Orders, Report
from launch.fleet.sockets import tcp_endpoints
from launch.fleet.warden import Warden
from launch.run_dir import make_run_dir, write_config
from tests.processes import processes_mentioning, write_corridor
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.nightly]

DEADLINE_S = 60.0


class Scene:
    """A home with one actor, and another node with one."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.paths = folder, RunPaths(folder / "r")
        make_run_dir(self.paths)
        self.keys = NodeKeys(self.paths.keys)
        preset = load_settings(write_corridor(folder))
        run = replace(preset.run, run="r", runs_dir=str(folder))
        endpoints = tcp_endpoints("127.0.0.1", str(self.paths.keys))
        self.settings = replace(preset, run=run, endpoints=endpoints)
        write_config(self.paths, self.settings)
        self.home, self.other = Warden(), Warden()

    def begin_home(self, resume: str = "none") -> Begin:
        values = settings_to_dict(self.settings)
        return Begin(settings=values, number=1, is_home=True, resume=resume)

    def begin_other(self) -> Begin:
        root = self.folder / "there" / "r"
        settings: Settings = replace(
            self.settings,
            run=replace(self.settings.run, runs_dir=str(root.parent)),
            endpoints=replace(self.settings.endpoints, keys_dir=str(root / "keys")),
        )
        keys = self.keys.for_node("node-1")
        return Begin(settings=settings_to_dict(settings), number=2, is_home=False, keys=keys)

    def tell(self, warden: Warden, actors: list[int], begin: Begin | None = None) -> Report:
        orders = Orders(actors=actors, total=2, floor=0, begin=begin)
        return Report.from_plain(warden.tend(orders.to_plain()))

    def metric(self, name: str) -> float:
        return float(str((last_record(self.paths.metrics) or {}).get(name, 0)))

    def actors(self) -> set[object]:
        """That have told how they are."""
        beats = read_jsonl(self.paths.heartbeat)
        return {beat["index"] for beat in beats if beat["role"] == "actor"}

    def close(self) -> None:
        for warden in (self.other, self.home):
            warden.close()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.close()
    for process in processes_mentioning(str(tmp_path)):
        process.kill()


def test_two_nodes_train_and_a_lost_supervisor_goes_on_from_a_saved_state(scene: Scene) -> None:
    scene.tell(scene.home, [0], scene.begin_home())
    scene.tell(scene.other, [1], scene.begin_other())

    def go_on() -> Report:
        scene.tell(scene.other, [1])
        return scene.tell(scene.home, [0])

    wait_until("updates", lambda: bool(go_on()) and scene.metric("updates") > 0, DEADLINE_S)
    wait_until("both actors", lambda: bool(go_on()) and scene.actors() == {0, 1}, DEADLINE_S)
    assert (scene.folder / "there/r/logs/actor-1.log").exists()

    # As Ray does with the children of a worker that ends.
    supervisor = psutil.Process(os.getpid()).children()
    mine = [p for p in supervisor if "launch.fleet.node_supervisor" in p.cmdline()]
    saved = list_numbered(scene.paths.checkpoints)[0]
    os.kill(mine[0].pid, signal.SIGKILL)
    wait_until("a report that knows nothing", lambda: not go_on().begun, DEADLINE_S)
    wait_until("a saved state", lambda: list_numbered(scene.paths.checkpoints)[0] > saved, 15.0)
    verify_checkpoint(list_numbered(scene.paths.checkpoints)[0])

    steps = scene.metric("global_step")
    report = scene.tell(scene.home, [0], scene.begin_home("auto"))
    assert report.begun
    wait_until("more steps", lambda: bool(go_on()) and scene.metric("global_step") > steps + 50, 60)

    # The end of the orders is the end of the node, in order.
    scene.close()
    assert processes_mentioning(str(scene.folder)) == []
    verify_checkpoint(list_numbered(scene.paths.checkpoints)[0])
