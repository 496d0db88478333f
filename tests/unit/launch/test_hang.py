"""Processes that live and do not turn: small scripts in place of the programs."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from common.jsonl import last_record
from launch.patience import Patience
from launch.plan import ProcessSpec
from launch.restart import RestartPolicy
from launch.supervisor import Supervisor

ROOT = Path(__file__).parents[3]
DEADLINE_S = 20.0
QUICK = RestartPolicy(first_delay_s=0.01, max_delay_s=0.05, max_fruitless_restarts=2)
PATIENCE = Patience(start_s=15.0, turn_s=0.6)

TURNS = """
import faulthandler, signal, sys, threading, time
sys.path.insert(0, {root!r})
from common.pulse import Pulse
faulthandler.register(signal.SIGUSR1, all_threads=True)
pulse = Pulse.from_environment()
def stuck_in_the_emulator():
    while True:
        time.sleep(0.1)
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
for _ in range({turns}):
    pulse.turn()
    time.sleep(0.05)
print("said", flush=True)
stuck_in_the_emulator()
"""


class Stage:
    """A supervisor with one actor that ticks as the launcher does."""

    def __init__(self, folder: Path, script: str, patience: Patience = PATIENCE) -> None:
        self.spec = ProcessSpec(
            role="actor",
            index=0,
            argv=(sys.executable, "-c", script),
            restart_argv=(sys.executable, "-c", "import time; time.sleep(60)"),
            environment={},
            log_file=folder / "actor.log",
            heartbeat_file=folder / "actor.jsonl",
            diagnostics=folder / "diagnostics",
            patience=patience,
        )
        self.supervisor = Supervisor([self.spec], min_actors=1, policy=QUICK)
        self.child = self.supervisor.children[0]
        self.supervisor.start()

    def tick_until(self, condition: Callable[[], bool]) -> None:
        end_s = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < end_s
            self.supervisor.tick()
            time.sleep(0.02)

    def wait_for_words(self, words: str = "said") -> None:
        self.tick_until(lambda: words in self.child.last_lines())


MakeStage = Callable[..., Stage]


@pytest.fixture
def make_stage(tmp_path: Path) -> Iterator[MakeStage]:
    made: list[Stage] = []

    def make(script: str, patience: Patience = PATIENCE) -> Stage:
        made.append(Stage(tmp_path, script, patience))
        return made[-1]

    yield make
    for stage in made:
        stage.supervisor.kill()


def script(turns: int) -> str:
    return TURNS.format(root=str(ROOT), turns=turns)


def test_a_loop_that_hangs_is_killed_and_its_stacks_are_kept(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    stage = make_stage(script(turns=3))

    stage.tick_until(lambda: stage.child.restarts == 1)

    dump = stage.child.last_dump
    assert dump is not None
    assert dump.parent == tmp_path / "diagnostics"
    text = dump.read_text()
    assert "no progress for" in text
    assert "stuck_in_the_emulator" in text
    assert text.count("most recent call first") == 2
    assert stage.child.exit_codes == [128 + signal.SIGKILL]
    assert str(dump) in stage.supervisor.news[0]
    assert stage.child.describe_restarts().startswith("restarts of actor-0: 1 (1 x no progress)")


def test_a_stopped_process_is_killed_and_told_to_have_been_silent(make_stage: MakeStage) -> None:
    stage = make_stage(script(turns=10_000))
    stage.tick_until(lambda: stage.child.pulse is not None and stage.child.pulse.has_turned)
    assert stage.child.process is not None

    os.kill(stage.child.process.pid, signal.SIGSTOP)
    stage.tick_until(lambda: stage.child.restarts == 1)

    assert "no answer (stopped)" in stage.child.last_reason
    assert stage.child.last_dump is not None
    assert "It did not answer" in stage.child.last_dump.read_text()


def test_who_turns_is_left_alone_and_who_only_starts_has_longer(make_stage: MakeStage) -> None:
    turning = make_stage(script(turns=60))
    began_s = time.monotonic()

    turning.wait_for_words()

    # Three seconds of turning and a start of a second or so, with 0.6 s between two turns allowed.
    assert time.monotonic() - began_s > 2.0
    assert turning.child.restarts == 0


def test_a_start_that_never_ends_is_a_hang(make_stage: MakeStage) -> None:
    stage = make_stage("import time; time.sleep(60)", Patience(start_s=0.3, turn_s=60.0))

    stage.tick_until(lambda: stage.child.restarts == 1)

    # It has no handler for the question, which then ends it; a program of ours would answer.
    assert "s while starting, no answer" in stage.child.last_reason


def test_without_patience_nothing_is_killed(make_stage: MakeStage) -> None:
    stage = make_stage(script(turns=1), Patience())
    stage.wait_for_words()
    end_s = time.monotonic() + 1.0

    stage.tick_until(lambda: time.monotonic() > end_s)

    assert stage.child.restarts == 0


def test_a_dump_that_cannot_be_written_does_not_save_the_process(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    (tmp_path / "diagnostics").write_text("a file where a folder should be")
    stage = make_stage(script(turns=1))

    stage.tick_until(lambda: stage.child.restarts == 1)

    assert stage.child.last_dump is None


def test_lives_grow_although_the_clock_is_set_back(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place = tmp_path / "lives.jsonl"
    told = f"import os; open({str(place)!r}, 'a').write('{{\"life\":' + LIFE + '}}\\n')"
    told = told.replace("LIFE", "os.environ['WARPZONE_INCARNATION']")
    stage = make_stage(told)
    stage.tick_until(lambda: stage.child.exit_codes != [])
    first = last_record(place)
    stage.child.spec = replace(stage.spec, restart_argv=stage.spec.argv)

    monkeypatch.setattr(time, "time_ns", lambda: 1)
    stage.tick_until(lambda: len(stage.child.exit_codes) == 2)

    second = last_record(place)
    assert first is not None
    assert second is not None
    assert int(str(second["life"])) == int(str(first["life"])) + 1
