"""A person changes a run of real processes while it goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered
from common.config import Settings
from common.jsonl import last_record, read_jsonl
from common.settings_files import settings_to_dict
from tests.key_factory import make_server_keys
from tests.process_system import START_DEADLINE_S, ProcessSystem, free_endpoints
from tests.processes import run
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def system(tmp_path: Path) -> Iterator[ProcessSystem]:
    settings = corridor_settings(tmp_path, {"endpoints": free_endpoints(), "actor": {"actors": 1}})
    system = ProcessSystem(settings)
    for package in ("replay_server", "learner", "actor"):
        system.start(package)
    system.wait_for("learner-0", "progress", 20)
    yield system
    system.close()


def control(system: ProcessSystem, *flags: str) -> tuple[int, str]:
    return run("launch/control.py", str(system.paths.root), *flags)


def test_what_is_asked_reaches_who_it_concerns_and_is_written_down(system: ProcessSystem) -> None:
    before = len(list_numbered(system.paths.checkpoints))

    code, output = control(system, "--exploration-scale", "2", "--samples-per-insert", "2")

    assert code == 0, output
    assert "exploration_scale is 2 now" in output
    wait_until(
        "acknowledged", lambda: system.number("actor-0", "controls_revision") == 1, deadline_s=20
    )
    wait_until(
        "balance",
        lambda: (last_record(system.paths.metrics) or {}).get("samples_per_insert_target") == 2.0,
        deadline_s=20,
    )
    assert control(system, "--checkpoint")[0] == 0
    wait_until("a checkpoint", lambda: len(list_numbered(system.paths.checkpoints)) > before, 20)
    asked = [line["name"] for line in read_jsonl(system.paths.control_log)]
    assert asked == ["samples_per_insert", "exploration_scale", "checkpoint"]


def test_a_refused_wish_is_an_error_and_stop_ends_the_learner(system: ProcessSystem) -> None:
    code, output = control(system, "--lr-scale", "1000")
    assert code == 2
    assert "refused: lr_scale must be between 0 and 100, got 1000" in output

    code, output = control(system, "--stop")

    assert (code, output) == (0, "the run saves and stops\n")
    assert system.processes["learner-0"].wait(30) == 0


def test_a_run_without_a_launcher_is_controlled_by_its_folder(tmp_path: Path) -> None:
    """As in containers: one file of settings for all, and the learner binds all addresses."""
    keys_dir, found = make_server_keys(tmp_path / "keys"), free_endpoints()
    settings = corridor_settings(tmp_path, {"endpoints": {**found, "keys_dir": keys_dir}})
    file = tmp_path / "far.json"
    file.write_text(json.dumps({"settings": settings_to_dict(settings)}))
    everywhere = found["control_endpoint"].replace("127.0.0.1", "*")
    with closing(ByHand(settings, file)) as system:
        system.start("replay_server")
        system.start("learner", 0, "--control-endpoint", everywhere)
        wait_until("an idle learner", lambda: system.beat("learner-0") != {}, START_DEADLINE_S)

        code, table = control(system)
        stopped = control(system, "--stop")

    assert code == 0, table
    assert "replay_server-0" in table
    assert stopped == (0, "the run saves and stops\n")


class ByHand(ProcessSystem):
    """Its settings are not in the folder of the run."""

    def __init__(self, settings: Settings, file: Path) -> None:
        super().__init__(settings)
        self._file = file

    def config_file(self) -> Path:
        return self._file
