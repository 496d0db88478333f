"""The supervisor with small scripts in place of the programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from common.errors import ExitCode
from common.ids import Incarnation, Role
from common.shards import shard_of
from launch.memory_watch import MemoryWatch
from launch.plan import ProcessSpec
from launch.restart import RestartPolicy
from launch.supervisor import Supervisor
from tests.waiting import wait_until

FOREVER = "import time\ntime.sleep(60)"
QUICK = RestartPolicy(first_delay_s=0.01, max_delay_s=0.05, max_fruitless_restarts=2)


def spec(folder: Path, role: Role, script: str, restart_script: str | None = None) -> ProcessSpec:
    return ProcessSpec(
        role=role,
        index=0,
        argv=(sys.executable, "-c", script),
        restart_argv=(sys.executable, "-c", restart_script or script),
        environment={},
        log_file=folder / f"{role}.log",
        heartbeat_file=folder / f"{role}.jsonl",
        diagnostics=folder / "diagnostics",
    )


class Stage:
    def __init__(self) -> None:
        self.made: list[Supervisor] = []

    def supervise(self, *specs: ProcessSpec, memory: MemoryWatch | None = None) -> Supervisor:
        supervisor = Supervisor(specs, min_actors=1, policy=QUICK, memory=memory)
        self.made.append(supervisor)
        supervisor.start()
        return supervisor


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    for supervisor in stage.made:
        supervisor.kill()


def run_until_outcome(supervisor: Supervisor, deadline_s: float = 20.0) -> ExitCode | None:
    end_s = time.monotonic() + deadline_s
    while supervisor.outcome is None and time.monotonic() < end_s:
        supervisor.tick()
        time.sleep(0.01)
    return supervisor.outcome


def test_a_learner_that_is_done_ends_the_run(stage: Stage, tmp_path: Path) -> None:
    supervisor = stage.supervise(spec(tmp_path, "learner", "pass"))

    assert run_until_outcome(supervisor) is ExitCode.DONE


def test_a_crash_loop_ends_the_run_with_the_last_lines(stage: Stage, tmp_path: Path) -> None:
    supervisor = stage.supervise(
        spec(tmp_path, "learner", FOREVER),
        spec(tmp_path, "actor", "print('actor-0: no cartridge', flush=True); raise SystemExit(75)"),
    )

    outcome = run_until_outcome(supervisor)

    assert outcome is ExitCode.TEMPORARY
    assert supervisor.blame is not None
    assert supervisor.blame.restarts == QUICK.max_fruitless_restarts
    assert supervisor.blame.last_lines() == ["actor-0: no cartridge"] * 3
    assert "only 0 of 1 actors can be kept alive; actor-0: exit code 75" in supervisor.reason
    assert supervisor.news[-1] == "actor-0: exit code 75 (no cartridge); switched off"


def test_a_process_knows_that_it_lived_before(stage: Stage, tmp_path: Path) -> None:
    tell = (
        "import os; print(os.environ.get('WARPZONE_RESTARTED'), flush=True); raise SystemExit(75)"
    )
    supervisor = stage.supervise(spec(tmp_path, "learner", tell))

    run_until_outcome(supervisor)

    assert supervisor.children[0].last_lines() == ["None", "1", "1"]


def test_a_configuration_error_ends_the_run_at_once(stage: Stage, tmp_path: Path) -> None:
    supervisor = stage.supervise(spec(tmp_path, "actor", "raise SystemExit(2)"))

    assert run_until_outcome(supervisor) is ExitCode.CONFIGURATION
    assert supervisor.children[0].restarts == 0


def test_one_actor_that_refuses_its_settings_does_not_end_the_others(
    stage: Stage, tmp_path: Path
) -> None:
    refused = spec(tmp_path, "actor", "raise SystemExit(2)")
    good = replace(spec(tmp_path, "actor", FOREVER), index=1, log_file=tmp_path / "actor-1.log")
    supervisor = stage.supervise(refused, good)

    run_until_outcome(supervisor, deadline_s=1.0)

    assert supervisor.outcome is None
    assert [child.state for child in supervisor.children] == ["off", "running"]


def several(folder: Path, role: Role, scripts: Sequence[str]) -> list[ProcessSpec]:
    return [
        replace(spec(folder, role, script), index=index, log_file=folder / f"{role}-{index}.log")
        for index, script in enumerate(scripts)
    ]


BROKEN = "raise SystemExit(75)"


def test_one_of_several_replay_servers_that_keeps_failing_costs_its_share(
    stage: Stage, tmp_path: Path
) -> None:
    supervisor = stage.supervise(
        *several(tmp_path, "replay_server", [FOREVER, BROKEN]),
        *several(tmp_path, "actor", [FOREVER] * 4),
        spec(tmp_path, "learner", "import time; time.sleep(2)"),
    )

    assert run_until_outcome(supervisor) is ExitCode.DONE
    states = {child.spec.name: child.state for child in supervisor.children}
    assert states["replay_server-0"] == "running"
    assert states["replay_server-1"] == "off"
    assert supervisor.news[-1] == (
        "training goes on with 1 of 2 replay servers; what replay_server-1 held is lost, "
        "its actors wait"
    )


def test_the_last_of_several_replay_servers_ends_the_run(stage: Stage, tmp_path: Path) -> None:
    supervisor = stage.supervise(
        *several(tmp_path, "replay_server", [BROKEN, BROKEN]),
        *several(tmp_path, "actor", [FOREVER] * 4),
    )

    assert run_until_outcome(supervisor) is ExitCode.TEMPORARY
    assert [child.state for child in supervisor.children[:2]] == ["off", "off"]
    assert "keeps failing (exit code 75)" in supervisor.reason


def test_a_replay_server_that_all_actors_send_to_ends_the_run(stage: Stage, tmp_path: Path) -> None:
    used = shard_of("actor-0", 2)
    scripts = [BROKEN if index == used else FOREVER for index in range(2)]
    supervisor = stage.supervise(
        *several(tmp_path, "replay_server", scripts), spec(tmp_path, "actor", FOREVER)
    )

    assert run_until_outcome(supervisor) is ExitCode.TEMPORARY
    assert supervisor.reason == (
        f"only 0 of 1 actors can be kept alive; replay_server-{used}: exit code 75"
    )


def test_training_goes_on_without_an_evaluator_whatever_it_says(
    stage: Stage, tmp_path: Path
) -> None:
    supervisor = stage.supervise(
        spec(tmp_path, "evaluator", "raise SystemExit(2)"),
        spec(tmp_path, "learner", "import time; time.sleep(0.5)"),
    )

    assert run_until_outcome(supervisor) is ExitCode.DONE
    assert supervisor.children[0].state == "off"


def test_a_kill_reaches_what_a_process_has_started(stage: Stage, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = (
        "import pathlib, subprocess, sys, time\n"
        "words = [sys.executable, '-c', 'import time; time.sleep(60)']\n"
        "rank = subprocess.Popen(words, start_new_session=True)\n"
        f"pathlib.Path({str(note)!r}).write_text(str(rank.pid))\n"
        "time.sleep(60)"
    )
    supervisor = stage.supervise(spec(tmp_path, "learner", script))
    wait_until("its process", lambda: note.exists() and note.read_text() != "", 20)
    pid = int(note.read_text())

    supervisor.kill()

    wait_until("the end of both", lambda: not psutil.pid_exists(pid), 20)


def life(folder: Path, role: Role, achieved: str, code: int) -> ProcessSpec:
    """Achieves something, then ends."""
    script = (
        "import json, os\n"
        f"beat = {{{achieved!r}: 3, 'incarnation': int(os.environ['WARPZONE_INCARNATION'])}}\n"
        f"open({str(folder / f'{role}.jsonl')!r}, 'a').write(json.dumps(beat) + '\\n')\n"
        f"raise SystemExit({code})"
    )
    return spec(folder, role, script)


@pytest.mark.parametrize(
    ("role", "achieved", "code"), [("actor", "blocks_acked", 75), ("learner", "updates_here", 1)]
)
def test_a_life_that_did_something_forgives_earlier_failures(
    stage: Stage, tmp_path: Path, role: Role, achieved: str, code: int
) -> None:
    supervisor = stage.supervise(life(tmp_path, role, achieved, code))
    child = supervisor.children[0]
    end_s = time.monotonic() + 20

    while child.restarts < 5 and time.monotonic() < end_s:
        supervisor.tick()
        time.sleep(0.01)

    assert child.restarts == 5
    assert supervisor.outcome is None


def test_a_learner_that_gives_up_again_and_again_ends_the_run(stage: Stage, tmp_path: Path) -> None:
    supervisor = stage.supervise(life(tmp_path, "learner", "updates_here", 75))

    assert run_until_outcome(supervisor) is ExitCode.TEMPORARY
    assert supervisor.children[0].restarts == QUICK.max_fruitless_restarts


def test_a_restart_uses_the_command_for_restarts(stage: Stage, tmp_path: Path) -> None:
    supervisor = stage.supervise(spec(tmp_path, "learner", "raise SystemExit(1)", "pass"))

    assert run_until_outcome(supervisor) is ExitCode.DONE


def test_stop_ends_actors_first_and_lets_the_replay_server_save_last(
    stage: Stage, tmp_path: Path
) -> None:
    order = tmp_path / "order"
    script = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        f"    open({str(order)!r}, 'a').write(ROLE + '\\n')\n"
        "    sys.exit(143)\n"
        "signal.signal(signal.SIGTERM, end)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    roles: tuple[Role, ...] = ("learner", "replay_server", "actor")
    supervisor = stage.supervise(
        *(spec(tmp_path, role, f"ROLE = {role!r}\n{script}") for role in roles)
    )
    end_s = time.monotonic() + 20
    while any(child.last_lines() != ["ready"] for child in supervisor.children):
        assert time.monotonic() < end_s
        time.sleep(0.02)

    supervisor.stop()

    assert order.read_text().split() == ["actor", "learner", "replay_server"]
    assert all(child.process and child.process.poll() == 143 for child in supervisor.children)


def test_a_learner_that_could_not_save_at_the_end_is_not_hidden(
    stage: Stage, tmp_path: Path
) -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    supervisor = stage.supervise(spec(tmp_path, "learner", script))
    end_s = time.monotonic() + 20
    while supervisor.children[0].last_lines() != ["ready"]:
        assert time.monotonic() < end_s
        time.sleep(0.02)

    supervisor.stop()

    assert supervisor.outcome is ExitCode.TEMPORARY
    assert "did not save" in supervisor.reason


OUT_OF_MEMORY = "print('actor-0: out of memory: no room', flush=True); raise SystemExit(75)"


def test_with_a_watch_the_first_end_for_lack_of_memory_ends_everything(
    stage: Stage, tmp_path: Path
) -> None:
    supervisor = stage.supervise(
        spec(tmp_path, "learner", FOREVER),
        spec(tmp_path, "actor", OUT_OF_MEMORY),
        memory=MemoryWatch(),
    )

    assert run_until_outcome(supervisor) is ExitCode.TEMPORARY
    assert supervisor.shortage == "ram"
    assert supervisor.reason == "actor-0 ran out of memory"
    assert supervisor.children[1].restarts == 0
    assert supervisor.news == ["actor-0: out of memory (out of memory: no room)"]


def test_without_a_watch_it_is_a_failure_like_any_other(stage: Stage, tmp_path: Path) -> None:
    supervisor = stage.supervise(spec(tmp_path, "actor", OUT_OF_MEMORY))

    assert run_until_outcome(supervisor) is ExitCode.TEMPORARY
    assert supervisor.shortage is None
    assert supervisor.children[0].restarts == QUICK.max_fruitless_restarts


def test_processes_come_and_go_while_the_others_run_on(stage: Stage, tmp_path: Path) -> None:
    supervisor = stage.supervise(spec(tmp_path, "learner", FOREVER))
    learner = supervisor.children[0].process
    new = [
        replace(spec(tmp_path, "actor", FOREVER), index=i, log_file=tmp_path / f"actor-{i}.log")
        for i in range(2)
    ]

    supervisor.add(new)
    first = supervisor.children[1].process
    supervisor.retire({"actor-0"})

    assert [child.spec.name for child in supervisor.children] == ["learner-0", "actor-1"]
    assert first is not None
    assert first.poll() is not None
    assert learner is not None
    assert learner.poll() is None
    supervisor.tick()
    assert supervisor.outcome is None


def test_lives_are_younger_than_one_that_was_started_elsewhere(
    stage: Stage, tmp_path: Path
) -> None:
    supervisor = stage.supervise()
    ahead = Incarnation(2**62)

    supervisor.raise_incarnation(ahead)
    supervisor.add([spec(tmp_path, "actor", FOREVER)])

    assert supervisor.incarnation > ahead
