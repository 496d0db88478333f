"""Rows 5, 8, 18, 19 and 20 on real processes: one replay server and one actor, many learners."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from common.checkpoint_files import load_checkpoint, read_manifest
from common.jsonl import line_problem, read_jsonl
from common.messages import BlockMessage
from common.resume import find_resume
from common.shared_files import remove_shared, shared_prefix
from common.transport import ZmqNetwork
from learner.snapshot import require_finite
from tests.block_factory import cut_blocks, random_play
from tests.faults.conftest import Measured
from tests.process_system import ProcessSystem, free_endpoints
from tests.run_factory import corridor_settings
from tests.scripted_peers import ScriptedClient, identity
from tests.small_disk import small_disk_at
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.faults_only, pytest.mark.timeout(600)]

DEADLINE_S = 120.0
"""Of every wait; a learner needs seconds, but other tests may have the cores."""
CHECKPOINT_INTERVAL_S = 0.5
SLACK_S = 5.0
"""For a machine that is busy with other tests: the interval is what is measured."""
KILLS = 2
MAX_LINE_BYTES = 4096
BLOCKING_NVML = """
import time

class NVMLError(Exception):
    pass

def nvmlInit():
    time.sleep(3600)
"""


@pytest.fixture(scope="module")
def system() -> Iterator[ProcessSystem]:
    folder = Path(tempfile.mkdtemp(prefix="wz-"))
    (folder / "pynvml.py").write_text(BLOCKING_NVML)
    settings = corridor_settings(
        folder,
        {
            "endpoints": free_endpoints(),
            "actor": {"actors": 2},
            "replay": {"balance_slack_agent_steps": 10_000_000, "samples_per_insert": 0.5},
            "learner": {"checkpoint_interval_s": CHECKPOINT_INTERVAL_S},
        },
    )
    system = ProcessSystem(settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder))
        for package in ("replay_server", "actor", "learner"):
            system.start(package)
        try:
            yield system
        finally:
            system.close()
            remove_shared(shared_prefix(system.paths))
            shutil.rmtree(folder)


def start_learner(system: ProcessSystem, *flags: str) -> subprocess.Popen[str]:
    """In the place of the one before it, which is killed if it still lives."""
    before = system.processes["learner-0"]
    before.kill()
    before.communicate(timeout=DEADLINE_S)
    return system.processes[system.start("learner", 0, *flags)]


def wait_for_updates(system: ProcessSystem, updates: int = 5) -> float:
    """Seconds until this life of the learner has made that many."""
    process = system.processes["learner-0"]
    first: list[float] = []

    def is_training() -> bool:
        assert process.poll() is None, f"the learner ended with {process.returncode}"
        if system.number("learner-0", "pid") != process.pid:
            return False
        first.append(system.number("learner-0", "progress"))
        return first[-1] >= first[0] + updates

    return wait_until(f"{updates} updates", is_training, DEADLINE_S)


@pytest.mark.fault(19, "NVML hangs", "heartbeats on schedule, without GPU and with the reason")
def test_a_hanging_nvml_does_not_hold_the_heartbeat(
    system: ProcessSystem, measured: Measured
) -> None:
    wait_for_updates(system, 20)

    beats = list(read_jsonl(system.paths.process_heartbeat("learner-0")))

    times = [float(str(beat["time"])) for beat in beats]
    longest_s = max(after - before for before, after in itertools.pairwise(times))
    assert longest_s < SLACK_S
    assert all(beat["gpu_count"] is None and beat["gpu_error"] for beat in beats)
    measured(f"{len(beats)} heartbeats, at most {longest_s:.1f} s apart, {beats[-1]['gpu_error']}")


def _newest_steps(system: ProcessSystem) -> int:
    point = find_resume(system.paths.root)
    return 0 if point is None else point.agent_steps


@pytest.mark.fault(
    5, "learner process SIGKILL", "goes on from a checkpoint of the last interval, actors stay"
)
def test_a_killed_learner_goes_on_where_it_saved(system: ProcessSystem, measured: Measured) -> None:
    wait_for_updates(system)
    wait_until("a checkpoint of play", lambda: _newest_steps(system) > 0, DEADLINE_S)
    actor_pid, lost_s, back_s = system.processes["actor-0"].pid, [], []

    for _ in range(KILLS):
        killed_s, began_s = time.time(), began_at(system)
        start_learner(system)
        point = find_resume(system.paths.root)
        assert point is not None
        assert point.agent_steps > 0
        lost_s.append(killed_s - max(read_manifest(point.path).created_unix_s, began_s))
        back_s.append(wait_for_updates(system))
        assert resumed_steps(system) == point.agent_steps

    acked = system.number("actor-0", "blocks_acked")
    wait_until("acks", lambda: system.number("actor-0", "blocks_acked") > acked, DEADLINE_S)
    assert system.processes["actor-0"].pid == actor_pid
    assert system.processes["actor-0"].poll() is None
    assert max(lost_s) < CHECKPOINT_INTERVAL_S + SLACK_S
    measured(f"lost {max(lost_s):.1f} s of training, learning again after {max(back_s):.0f} s")


def began_at(system: ProcessSystem) -> float:
    """Unix time at which this life of the learner was first heard of; it lost nothing before."""
    pid = system.processes["learner-0"].pid
    beats = read_jsonl(system.paths.process_heartbeat("learner-0"))
    return next(float(str(beat["time"])) for beat in beats if beat["pid"] == pid)


def resumed_steps(system: ProcessSystem) -> int:
    lines = [line for line in system.log("learner-0").read_text().splitlines() if "resumed" in line]
    return int(lines[-1].partition("agent_steps=")[2].split()[0])


@pytest.mark.fault(20, "kills while files are written", "every line is whole, or one is skipped")
def test_what_killed_processes_wrote_can_be_read(system: ProcessSystem, measured: Measured) -> None:
    root = system.paths.root
    lines = [line for path in root.rglob("*.jsonl") for line in path.read_bytes().splitlines(True)]

    torn = [line for line in lines if line.endswith(b"\n") and line_problem(line)]
    longest = max(len(line) for line in lines)

    assert len(torn) <= KILLS
    assert longest <= MAX_LINE_BYTES
    measured(f"{len(lines)} lines after {KILLS} kills: {len(torn)} torn, longest {longest} bytes")


@pytest.mark.fault(18, "NaN reward or priority from an actor", "refused at the door and counted")
@pytest.mark.parametrize("field", ["rewards", "priorities"])
def test_a_poisoned_block_is_refused(system: ProcessSystem, field: str, measured: Measured) -> None:
    spec, network = system.settings.spec, ZmqNetwork()
    before = system.number("replay_server-0", "replay_rejected_blocks_total")
    who = identity("actor", 1, incarnation=time.time_ns(), run_id=system.settings.run.run)
    try:
        client = ScriptedClient(
            network,  # type: ignore[arg-type] # the same lines, over TCP
            who,
            spec,
            system.settings.endpoints.replay_endpoint,
        )
        client.say_hello()
        (block, *_) = cut_blocks(random_play(80, spec, np.random.default_rng(1)), 16, spec)
        arrays = {name: getattr(block, name).copy() for name in BlockMessage.arrays}
        arrays[field][3] = np.nan
        message = BlockMessage(
            incarnation=who.incarnation,
            sequence=0,
            env_index=0,
            weight_generation=0,
            weight_version=0,
            stage="1-1",
        )
        client.say(message, arrays)
        counted_s = wait_until(
            "counted",
            lambda: system.number("replay_server-0", "replay_rejected_blocks_total") > before,
            DEADLINE_S,
        )
    finally:
        network.close()
    measured(f"counted after {counted_s:.1f} s ({field})")


@pytest.mark.fault(18, "loss is not finite", "10 in a row: the last good state is saved, exit 75")
def test_a_diverging_learner_saves_the_last_good_state(
    system: ProcessSystem, measured: Measured
) -> None:
    learner = start_learner(system, "--learning-rate", "1e38", "--learning-rate-final", "1e38")

    _, errors = learner.communicate(timeout=DEADLINE_S)

    assert learner.returncode == 75
    (line,) = errors.splitlines()
    assert "10 updates in a row were not finite" in line
    point = find_resume(system.paths.root)
    assert point is not None
    assert point.skipped == ()
    data = load_checkpoint(point.path)
    for tensors in data.tensors.values():
        require_finite(tensors)
    skipped = json.loads(json.dumps(data.state))["learner"]["skipped_updates"]
    measured(f"exit {learner.returncode}, checkpoint of {data.updates} updates, {skipped} skipped")


@pytest.fixture
def small_disk(system: ProcessSystem) -> Iterator[Path]:
    """A file system in the place of the checkpoints with room for one and a half."""
    folder = system.paths.checkpoints
    point = find_resume(system.paths.root)
    assert point is not None
    size = sum(path.stat().st_size for path in point.path.iterdir())
    system.processes["learner-0"].kill()
    with small_disk_at(folder, size * 3 // 2):
        yield folder
        system.processes["learner-0"].kill()
        system.processes["learner-0"].wait(DEADLINE_S)


@pytest.mark.fault(
    8,
    "disk full while saving",
    "training goes on, the old checkpoint stands, the heartbeat tells, exit 75 after 3",
)
def test_a_full_disk_ends_the_learner_after_three_failures(
    system: ProcessSystem, small_disk: Path, measured: Measured
) -> None:
    learner = start_learner(system)
    errors_told: set[str] = set()

    def has_ended() -> bool:
        errors_told.add(str(system.beat("learner-0").get("checkpoint_error")))
        return learner.poll() is not None

    wait_until("the end", has_ended, DEADLINE_S)

    updates = system.number("learner-0", "progress")
    assert learner.returncode == 75
    assert updates > 0
    assert any("No space left on device" in error for error in errors_told)
    assert [path.name for path in small_disk.iterdir() if path.name.startswith(".tmp")] == []
    point = find_resume(system.paths.root)
    assert point is not None
    assert point.skipped == ()
    measured(f"exit 75 after {updates:.0f} updates, checkpoint {point.path.name} valid")
