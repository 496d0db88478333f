"""What lives and does not move, what cannot start, and a launcher that is gone."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from common.checkpoint_files import list_numbered, verify_checkpoint
from launch.patience import TURN_DEADLINES_S
from tests.faults.conftest import Measured
from tests.launched_run import LaunchedRun
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.faults_only, pytest.mark.timeout(240)]

SERVER_PATIENCE = 0.4
"""Of the deadlines: 12 s for learner and replay server, 4 s for actors, and a minute to start."""
SEEN_LATE = 1.5
"""Of a deadline, until the kill: a second for the stacks, the rest for a launcher that gets little
CPU time and looks less often."""


@dataclass(frozen=True, slots=True)
class Crashing:
    run: LaunchedRun
    began_s: float


MakeRun = Callable[..., LaunchedRun]


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[MakeRun]:
    made: list[LaunchedRun] = []

    def make(*words: str, **faults: object) -> LaunchedRun:
        folder = tmp_path / f"run-{len(made)}"
        folder.mkdir()
        made.append(LaunchedRun(folder, *words, faults=faults))
        return made[-1]

    yield make
    for run in made:
        run.close()


@pytest.fixture(scope="module", autouse=True)
def crashing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashing]:
    """Begun first and judged last: most of a crash loop is waiting."""
    folder = tmp_path_factory.mktemp("crashing")
    run = LaunchedRun(folder, "--actors", "1", faults={"fail_to_build": True})
    try:
        yield Crashing(run, time.monotonic())
    finally:
        run.close()


@pytest.mark.fault(
    2, "actor hangs: endless env.step, SIGSTOP", "seen within 15 s, stacks kept, killed, replaced"
)
def test_hanging_actors_are_replaced(make_run: MakeRun, tmp_path: Path, measured: Measured) -> None:
    run = make_run(
        *("--actors", "3"),
        hang_at_agent_step=200,
        once_file=str(tmp_path / "once"),
        agent_step_delay_s=0.005,
    )
    run.wait("an actor that hangs", (tmp_path / "once").exists)
    first = run.pids()
    time.sleep(1.0)
    # The one that hangs says nothing more; of the other two one is stopped.
    moving = [peer for peer in ("actor-0", "actor-1", "actor-2") if _moves(run, peer)]
    stopped, well = moving[:2]
    began_s = time.monotonic()
    run.kill(stopped, signal.SIGSTOP)
    (hung,) = {"actor-0", "actor-1", "actor-2"} - set(moving)
    run.wait("the end of the one that hangs", lambda: f"child={hung} reason" in run.log(), 40)
    run.wait("the end of the stopped one", lambda: f"child={stopped} reason" in run.log(), 40)
    seen_s = time.monotonic() - began_s
    run.wait_for_new_life(hung, first[hung], "blocks_acked")
    run.wait_for_new_life(stopped, first[stopped], "blocks_acked")

    dumps = {path.name: path.read_text() for path in run.paths.diagnostics.glob("*-stacks.txt")}
    hung_dump = dumps[f"{hung}-{first[hung]}-stacks.txt"]
    assert "_misbehave" in hung_dump
    assert "no answer (stopped)" in dumps[f"{stopped}-{first[stopped]}-stacks.txt"]
    assert run.pid(well) == first[well]
    assert len(dumps) == 2
    ended = run.stop(signal.SIGINT)
    measured(f"SIGSTOP seen after {seen_s:.1f} s; stacks name _misbehave; the others went on")
    assert ended.code == 130, ended.output
    assert "1 x no progress" in ended.output
    assert seen_s < SEEN_LATE * TURN_DEADLINES_S["actor"]
    assert run.left() == []


def _moves(run: LaunchedRun, peer: str) -> bool:
    before = run.number(peer, "uptime_s")
    end_s = time.monotonic() + 3.0
    while time.monotonic() < end_s:
        if run.number(peer, "uptime_s") > before:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.fault(
    2,
    "replay server hangs, then the learner: SIGSTOP, deadlines of 12 instead of 30 s",
    "seen within 18 s, stacks kept, killed, replaced; who waits for them stays",
)
def test_a_hanging_server_is_replaced_and_who_waits_for_it_is_not(
    make_run: MakeRun, measured: Measured
) -> None:
    run = make_run("--patience", str(SERVER_PATIENCE))
    run.wait_for("learner-0", "updates_here", 5)

    began = run.pids()
    replay_s = _seen_after_stop(run, "replay_server-0")
    run.wait_for_new_life("replay_server-0", began["replay_server-0"], "replay_push_blocks_total")
    run.wait_for("learner-0", "progress", run.number("learner-0", "progress"))
    between = run.pids()
    learner_s = _seen_after_stop(run, "learner-0")
    run.wait_for_new_life("learner-0", began["learner-0"], "updates_here")

    measured(f"seen after {replay_s:.1f} and {learner_s:.1f} s; both new lives work")
    assert _changed(began, between) == {"replay_server-0"}
    assert _changed(between, run.pids()) == {"learner-0"}
    dumps = {path.name: path.read_text() for path in run.paths.diagnostics.glob("*-stacks.txt")}
    hung = ("replay_server-0", "learner-0")
    assert dumps.keys() == {f"{peer}-{began[peer]}-stacks.txt" for peer in hung}
    assert all("no answer (stopped)" in text for text in dumps.values())
    for peer, seen_s in zip(hung, (replay_s, learner_s), strict=True):
        deadline_s = SERVER_PATIENCE * TURN_DEADLINES_S[peer.removesuffix("-0")]
        assert seen_s < SEEN_LATE * deadline_s
    ended = run.stop(signal.SIGINT)
    assert ended.code == 130, ended.output
    assert all(f"restarts of {peer}: 1 (1 x no progress)" in ended.output for peer in hung)
    assert run.left() == []


def _seen_after_stop(run: LaunchedRun, peer: str) -> float:
    """Stop a process; seconds until the launcher has killed it."""
    run.kill(peer, signal.SIGSTOP)
    return run.wait(
        f"the end of {peer}", lambda: f"process hangs, killed child={peer} " in run.log(), 40
    )


def _changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {peer for peer in after if after[peer] != before[peer]}


@pytest.mark.fault(
    10, "launcher SIGKILL while an actor hangs", "all processes gone within 5 s, learner saved"
)
def test_a_lost_launcher_takes_its_children_with_it(
    make_run: MakeRun, tmp_path: Path, measured: Measured
) -> None:
    once = tmp_path / "once"
    run = make_run(hang_at_agent_step=600, once_file=str(once))
    run.wait_for("learner-0", "updates_here", 5)
    run.wait("an actor that hangs", once.exists)

    os.kill(run.launcher.pid, signal.SIGKILL)
    run.launcher.wait()
    took_s = wait_until("all children gone", lambda: not run.left(), 30)

    steps = verify_checkpoint(list_numbered(run.paths.checkpoints)[0]).agent_steps
    measured(f"all gone after {took_s:.1f} s, checkpoint of {steps} agent steps")
    assert took_s < 5
    assert steps > 0


@pytest.mark.fault(
    10, "launcher SIGKILL while learner and replay server are stopped", "all gone within 15 s"
)
def test_a_lost_launcher_leaves_nobody_who_cannot_hear(
    make_run: MakeRun, measured: Measured
) -> None:
    run = make_run()
    run.wait_for("learner-0", "updates_here", 5)
    for peer in ("learner-0", "replay_server-0"):
        run.kill(peer, signal.SIGSTOP)

    os.kill(run.launcher.pid, signal.SIGKILL)
    run.launcher.wait()
    took_s = wait_until("all children gone", lambda: not run.left(), 40)

    measured(f"all gone after {took_s:.1f} s")
    assert took_s < 15


@pytest.mark.fault(9, "Ctrl-C twice", "the second ends everything at once, nothing is left")
def test_a_second_signal_ends_everything_at_once(make_run: MakeRun, measured: Measured) -> None:
    run = make_run()
    run.wait_for("learner-0", "progress", 1)
    run.kill("learner-0", signal.SIGSTOP)

    run.launcher.send_signal(signal.SIGINT)
    time.sleep(0.5)
    ended = run.stop(signal.SIGINT)

    measured(f"exit {ended.code} after {ended.took_s:.1f} s, although the learner was stopped")
    assert ended.code == 130
    assert ended.took_s < 3
    assert run.left() == []


@pytest.mark.fault(
    3, "crash loop: no environment can be built", "five restarts with longer pauses, then exit 75"
)
def test_a_crash_loop_ends_the_run_with_the_last_words(
    crashing: Crashing, measured: Measured
) -> None:
    run = crashing.run

    ended = run.ended(crashing.began_s, deadline_s=150)

    measured(f"exit {ended.code} after five restarts")
    assert ended.code == 75, ended.output
    assert "only 0 of 1 actors can be kept alive; actor-0: exit code 75" in ended.output
    assert "told to fail to build" in ended.output.partition("last lines of")[2]
    assert "restarts of actor-0: 5 (6 x exit code 75)" in ended.output
    delays = [float(line.partition("delay_s=")[2]) for line in _restarts(run)]
    for delay_s, least_s in zip(delays, (0.5, 1.0, 2.0, 4.0, 8.0), strict=True):
        assert least_s <= delay_s <= 1.5 * least_s
    assert run.left() == []


def _restarts(run: LaunchedRun) -> list[str]:
    return [line for line in run.log().splitlines() if "process ended, restarting" in line]
