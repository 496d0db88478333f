"""What the learner adapts reaches an actor while it plays, and the actor says so."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from common.jsonl import read_jsonl
from tests.process_system import ProcessSystem, free_endpoints
from tests.run_factory import corridor_settings
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

ALWAYS_MORE_HELP = {
    "adaptive": True,
    "adaptive_window_agent_steps": 300,
    "adaptive_ratio_low": 0.999,
    "adaptive_ratio_high": 1.0,
}
CHANGES = 2


@pytest.fixture
def system() -> Iterator[ProcessSystem]:
    folder = Path(tempfile.mkdtemp(prefix="wz-"))
    changes: dict[str, Mapping[str, object]] = {
        "endpoints": free_endpoints(),
        "actor": {"actors": 1},
        "adaptive": ALWAYS_MORE_HELP,
    }
    system = ProcessSystem(corridor_settings(folder, changes))
    try:
        for package in ("replay_server", "learner", "actor"):
            system.start(package)
        yield system
    finally:
        system.close()
        shutil.rmtree(folder)


def test_changes_reach_a_running_actor_and_are_acknowledged(system: ProcessSystem) -> None:
    system.wait_for("actor-0", "controls_revision", CHANGES)
    log = system.log("learner-0")
    acknowledged = "all actors play with the newest controls"
    wait_until("acknowledged", lambda: acknowledged in log.read_text(encoding="utf-8"), 30)

    beats = list(read_jsonl(system.paths.process_heartbeat("actor-0")))
    told = [int(str(beat["controls_revision"])) for beat in beats if beat.get("controls_revision")]
    lines = list(read_jsonl(system.paths.metrics))
    assert told == sorted(told)
    assert len({beat["incarnation"] for beat in beats}) == 1
    assert any(line["controls_acked"] == 1 for line in lines)
    assert lines[-1]["adaptive_exploration_scale"] != 1.0
    assert "adapted agent_steps=" in log.read_text(encoding="utf-8")
