"""One run that is hurt again and again, test after test; the last of them ends it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered, verify_checkpoint
from common.settings_files import load_settings
from launch.private_sockets import OWNER, PREFIX
from tests.faults.conftest import Measured
from tests.launched_run import LaunchedRun
from tests.processes import run as run_command

pytestmark = [pytest.mark.integration, pytest.mark.faults_only, pytest.mark.timeout(240)]

ACTORS = ("actor-0", "actor-1", "actor-2")
WINDOW = 4
BLOCK_STEPS = 16
SLACK_STEPS = 50
STEP_DELAY_S = 0.002
SETTLED_READS = 12
REPLAY_KILLS = 20
RUNNING_AGAIN_S = 5.0
"""From the kill to the first block of the new life, beside what our imports take here and now."""
OTHERS_GO_ON_S = 2.0
"""While the new life starts, until each of the others has one more block acknowledged."""
RECONNECTED_S = 5.0
"""The same of all actors, from the first heartbeat of a new replay server: it serves by then."""
SHIFTED_CLOCK = """
import time
_offset = {offset!r}
_time, _time_ns = time.time, time.time_ns
def _shift():
    with open(_offset) as file:
        return int(file.read() or 0)
time.time = lambda: _time() + _shift()
time.time_ns = lambda: _time_ns() + _shift() * 10**9
"""


class HurtRun(LaunchedRun):
    """With a wall clock that the test can set."""

    def __init__(self, folder: Path) -> None:
        self.offset = folder / "offset"
        self.offset.write_text("0")
        (folder / "sitecustomize.py").write_text(SHIFTED_CLOCK.format(offset=str(self.offset)))
        self.stale = folder / "tmp" / f"{PREFIX}killed"
        """What the sockets of a launcher that was killed leave."""
        self.stale.mkdir(parents=True)
        (self.stale / OWNER).touch()
        os.utime(self.stale, (0, 0))
        balance = ("--balance-slack-agent-steps", str(SLACK_STEPS), "--samples-per-insert", "1")
        words = ("--actors", "3", "--block-steps", str(BLOCK_STEPS), *balance)
        faults = {"agent_step_delay_s": STEP_DELAY_S}
        env = {"PYTHONPATH": str(folder), "TMPDIR": str(self.stale.parent)}
        super().__init__(folder, *words, faults=faults, env=env)


@pytest.fixture(scope="module")
def hurt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HurtRun]:
    run = HurtRun(tmp_path_factory.mktemp("hurt"))
    try:
        run.wait_for("learner-0", "updates_here", 10)
        yield run
    finally:
        run.close()


@pytest.mark.fault(
    13, "learner slower than actors", "memory flat, samples per insert within 5 % and the slack"
)
def test_a_slow_learner_holds_the_actors(hurt: HurtRun, measured: Measured) -> None:
    peers = (*ACTORS, "replay_server-0")
    before = {peer: hurt.rss_mb(peer) for peer in peers}
    began = hurt.number("replay_server-0", "replay_push_total")
    pid, began_s = hurt.pid("learner-0"), time.time()

    for _ in range(8):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.8)
        os.kill(pid, signal.SIGCONT)
        time.sleep(0.2)
    growth_mb = max(hurt.rss_mb(peer) - before[peer] for peer in peers)
    stored = hurt.number("replay_server-0", "replay_push_total")
    ratio = hurt.number("replay_server-0", "samples_per_insert")

    waits = [hurt.largest(actor, "share_wait", began_s) for actor in ACTORS]
    measured(f"{stored - began:.0f} steps in 8 s, {ratio:.3f} for 1, {growth_mb:+.1f} MB")
    assert min(waits) > 0.5
    under_way = len(ACTORS) * WINDOW * BLOCK_STEPS
    assert abs(ratio - 1) * (stored - 500) < 0.05 * stored + SLACK_STEPS + under_way
    # The buffer of 20,000 steps fills while we look: some 6 MB in all.
    assert growth_mb < 8


@pytest.mark.fault(
    1,
    "actor SIGKILL, again and again",
    "seen within 1 s, started again within 2 s, playing within 5 s and the imports; others "
    "store more within 2 s meanwhile and lose no block (their rate is not promised); nothing twice",
)
def test_killed_actors_come_back(hurt: HurtRun, measured: Measured) -> None:
    others, imports_s = hurt.pids(), _imports_s()
    seen, started, took, on = [], [], [], []
    for victim in ("actor-1", "actor-2", "actor-1"):
        began_s, before, old = time.monotonic(), hurt.log(), hurt.kill(victim)
        hurt.wait_for_news(f"process ended, restarting child={victim}", before)
        seen.append(time.monotonic() - began_s)
        hurt.wait_for_news(f"process started child={victim}", before)
        started.append(time.monotonic() - began_s)
        on.append(_wait_for_blocks(hurt, [actor for actor in ACTORS if actor != victim]))
        hurt.wait_for_new_life(victim, old, "blocks_acked", 30)
        took.append(time.monotonic() - began_s)
    imports_s = max(imports_s, _imports_s())
    same = ("actor-0", "learner-0", "replay_server-0")

    assert {peer: hurt.pid(peer) for peer in same} == {peer: others[peer] for peer in same}
    stored = _while_nobody_learns(hurt, _stored)
    lives = [beat for actor in ACTORS for beat in hurt.last_beats(actor).values()]
    sent, acked = (
        sum(int(str(beat[f"blocks_{what}"])) for beat in lives) for what in ("submitted", "acked")
    )
    measured(
        f"seen after {max(seen):.1f} s, started after {max(started):.1f} s, playing after "
        f"{max(took):.1f} s (imports {imports_s:.1f} s), others on after {max(on):.1f} s; "
        f"{sent} blocks sent, {acked} acked, {stored:.0f} stored"
    )
    assert max(seen) < 1
    assert max(started) < 2
    assert max(took) < RUNNING_AGAIN_S + imports_s
    assert max(on) < OTHERS_GO_ON_S
    _assert_nothing_lost(hurt)
    # Those that live have nothing under way now. A life tells of itself every 0.2 s: what it
    # stored after its last word is a block or two, and its window.
    assert 0 <= stored - acked <= len(took) * 2 * WINDOW
    assert hurt.number("replay_server-0", "replay_rejected_blocks_total") == 0
    assert hurt.log().count("process ended, restarting child=actor") == len(took)


def _imports_s() -> float:
    """How long an actor takes to load its program, with what else this machine does."""
    began_s = time.monotonic()
    code, output = run_command("-c", "import actor.main, actor.assembly")
    assert code == 0, output
    return time.monotonic() - began_s


def _wait_for_blocks(run: LaunchedRun, actors: Sequence[str]) -> float:
    """Seconds until each of these actors has more blocks acknowledged than now."""
    told = {actor: run.number(actor, "blocks_acked") for actor in actors}

    def is_more() -> bool:
        return all(run.number(actor, "blocks_acked") > n for actor, n in told.items())

    return run.wait(f"more blocks of {actors}", is_more, 30)


def _assert_nothing_lost(run: LaunchedRun) -> None:
    """Of the actors that live now: every block is acknowledged, or in the window."""
    for actor in ACTORS:
        submitted, acked, rejected, dropped = (
            run.number(actor, f"blocks_{name}")
            for name in ("submitted", "acked", "rejected", "dropped")
        )
        assert rejected == dropped == 0
        assert 0 <= submitted - acked <= WINDOW


def _stored(run: LaunchedRun) -> float:
    return run.number("replay_server-0", "replay_push_blocks_total")


@pytest.mark.fault(22, "emulator segfault", "only that actor dies, and it is replaced")
def test_a_segfault_ends_one_actor(hurt: HurtRun, measured: Measured) -> None:
    others = hurt.pids()

    old = hurt.kill("actor-2", signal.SIGSEGV)
    took_s = hurt.wait_for_new_life("actor-2", old, "blocks_acked", 30)

    now = hurt.pids()
    assert {peer for peer in now if now[peer] != others[peer]} == {"actor-2"}
    assert "child=actor-2 reason=ended by SIGSEGV" in hurt.log()
    assert "Fatal Python error: Segmentation fault" in hurt.log("actor-2")
    measured(f"playing again after {took_s:.1f} s, stack in its log")


@pytest.mark.fault(
    4,
    "replay server SIGKILL, again and again",
    "others survive, memory bounded, no block twice; all actors store within 5 s of its start",
)
def test_a_killed_replay_server_comes_back(hurt: HurtRun, measured: Measured) -> None:
    others, memory = hurt.pids(), {peer: hurt.rss_mb(peer) for peer in (*ACTORS, "learner-0")}
    took = []
    for number in range(REPLAY_KILLS):
        old = hurt.kill("replay_server-0")
        if number == REPLAY_KILLS - 1:
            acked_before = _settled(hurt, _acked)
        hurt.wait_for_new_life("replay_server-0", old, "pid")
        took.append(_wait_for_blocks(hurt, ACTORS))
    trained = hurt.number("learner-0", "progress")
    hurt.wait_for("learner-0", "progress", trained, 30)

    now = hurt.pids()
    assert {peer for peer in now if now[peer] != others[peer]} == {"replay_server-0"}
    growth_mb = max(hurt.rss_mb(peer) - memory[peer] for peer in memory)
    assert growth_mb < 32
    for actor in ACTORS:
        beat = hurt.beat(actor)
        out = int(str(beat["blocks_submitted"])) - int(str(beat["blocks_acked"]))
        assert 0 <= out <= WINDOW + int(str(beat["blocks_rejected"]))
    assert hurt.number("replay_server-0", "replay_rejected_blocks_total") == 0
    stored = _while_nobody_learns(hurt, _stored)
    acked = _acked(hurt) - acked_before
    measured(
        f"{REPLAY_KILLS} kills, all store again {max(took):.1f} s after its start at most, "
        f"{growth_mb:+.1f} MB; the last life stored {stored:.0f} blocks and acked {acked:.0f}"
    )
    assert stored == acked > 0
    assert max(took) < RECONNECTED_S


def _acked(run: LaunchedRun) -> float:
    return sum(run.number(actor, "blocks_acked") for actor in ACTORS)


def _settled(run: LaunchedRun, read: Callable[[LaunchedRun], float]) -> float:
    """What is told when nothing moves any more: heartbeats come every 0.2 s."""
    told: list[float] = []

    def is_settled() -> bool:
        time.sleep(0.1)
        told.append(read(run))
        newest = told[-SETTLED_READS:]
        return len(newest) == SETTLED_READS and len(set(newest)) == 1

    run.wait("nothing moves", is_settled, 8)
    return told[-1]


def _while_nobody_learns(run: LaunchedRun, read: Callable[[LaunchedRun], float]) -> float:
    """Once the actors are held, because the learner is."""
    learner = run.pid("learner-0")
    os.kill(learner, signal.SIGSTOP)
    try:
        _settled(run, _acked)
        return _settled(run, read)
    finally:
        os.kill(learner, signal.SIGCONT)


@pytest.mark.fault(23, "two launchers on one run", "the second refuses, names the first, exit 2")
def test_a_second_launcher_is_refused_and_told_by_whom(hurt: HurtRun, measured: Measured) -> None:
    words = ("--device", "cpu", "--runs-dir", str(hurt.folder), "--run", "r")

    began_s = time.monotonic()
    answers = [run_command("launch/local.py", *words, timeout_s=20)]
    took_s = time.monotonic() - began_s
    answers.append(run_command("launch/local.py", *words, "--fresh", timeout_s=20))

    for code, output in answers:
        assert code == 2
        assert f"in use by process {hurt.launcher.pid}" in output
    assert hurt.launcher.poll() is None
    assert hurt.paths.metrics.exists()
    measured(f"refused after {took_s:.1f} s, interpreter included")


@pytest.mark.fault(21, "the clock is set back an hour, then on", "nobody is killed or refused")
def test_a_clock_that_jumps_harms_nobody(hurt: HurtRun, measured: Measured) -> None:
    others = hurt.pids()
    lives = {peer: hurt.number(peer, "incarnation") for peer in ("actor-0", "learner-0")}
    refused = hurt.number("replay_server-0", "replay_rejected_blocks_total")

    hurt.offset.write_text("-3600")
    killed = {peer: hurt.kill(peer) for peer in lives}
    hurt.wait_for_new_life("actor-0", killed["actor-0"], "blocks_acked", 40)
    hurt.wait_for_new_life("learner-0", killed["learner-0"], "updates_here", 40)
    hurt.wait("weights of the newest learner", lambda: _version(hurt) > 0, 30)
    hurt.offset.write_text("7200")
    time.sleep(2.0)

    now = hurt.pids()
    assert {peer for peer in now if now[peer] != others[peer]} == set(killed)
    for peer, before in lives.items():
        assert hurt.number(peer, "incarnation") > before
    assert hurt.number("replay_server-0", "replay_rejected_blocks_total") == refused
    assert "no progress" not in hurt.log()
    assert "hangs" not in hurt.log()
    measured("two processes replaced meanwhile, both believed; no false alarm")


def _version(run: LaunchedRun) -> float:
    versions = [run.number(actor, "weight_version") for actor in ACTORS]
    learner = run.number("learner-0", "progress")
    return min(versions) if max(versions) <= learner else 0


@pytest.mark.fault(9, "SIGTERM", "checkpoint and clean exit within 10 s, 143, no orphan, no socket")
def test_sigterm_saves_and_leaves_nothing(hurt: HurtRun, measured: Measured) -> None:
    endpoint = load_settings(hurt.paths.config).endpoints.replay_endpoint
    sockets = Path(endpoint.removeprefix("ipc://")).parent
    assert sockets.exists()

    ended = hurt.stop(signal.SIGTERM)

    steps = verify_checkpoint(list_numbered(hurt.paths.checkpoints)[0]).agent_steps
    measured(f"{ended.took_s:.1f} s, exit {ended.code}, checkpoint of {steps} agent steps")
    assert ended.code == 143, ended.output
    assert ended.took_s < 10
    assert hurt.left() == []
    assert not sockets.exists()
    assert not hurt.stale.exists()
    for actor in ACTORS:
        beat = hurt.beat(actor)
        parts = [int(str(beat[f"blocks_{name}"])) for name in ("acked", "rejected", "dropped")]
        assert beat["state"] == "stopped"
        assert beat["blocks_submitted"] == sum(parts)
    assert "restarts of actor-1: 2 (2 x ended by SIGKILL)" in ended.output
