from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from actor.env.construction import (
    ConstructionPlan,
    Recipe,
    build_serially,
)
from actor.env.corridor import CorridorEnv
from actor.env.host_lock import HostLock, default_lock_path
from common.config import EnvSettings
from common.errors import ConstructionTimeout, EnvironmentFailed

_STAGES = ["start", "lock", "import", "construct", "reset", "ready"]
_ROOT = Path(__file__).parents[3]

_HOLDER_PROGRAM = """
import sys, time
from pathlib import Path
from actor.env.host_lock import HostLock
lock = HostLock(Path(sys.argv[1]), role="actor", index=7)
with lock.held(deadline=time.monotonic() + 10, clock=time.monotonic):
    lock.note_stage("construct")
    print("held", flush=True)
    sys.stdin.read()
"""


def _plan(folder: Path, *, index: int = 0, deadline_s: float = 10.0) -> ConstructionPlan:
    return ConstructionPlan(
        role="actor",
        index=index,
        deadline_s=deadline_s,
        lock_path=folder / "construction.lock",
        diagnostics_path=folder / "diagnostics" / "construction.jsonl",
    )


def _corridor_recipe() -> Recipe:
    return Recipe.of(EnvSettings(game="corridor", size=16))


def _events(plan: ConstructionPlan) -> list[dict[str, object]]:
    assert plan.diagnostics_path is not None
    return [json.loads(line) for line in plan.diagnostics_path.read_text().splitlines()]


@contextmanager
def _held_by_another_process(lock_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", _HOLDER_PROGRAM, str(lock_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        try:
            yield process
        finally:
            process.kill()


def test_every_stage_is_timed_and_recorded(tmp_path: Path) -> None:
    plan = _plan(tmp_path)

    env, durations_s = build_serially(_corridor_recipe(), plan)

    assert env.num_actions == 3
    assert list(durations_s) == _STAGES
    events = _events(plan)
    assert [event["event"] for event in events] == _STAGES
    assert all(event["role"] == "actor" and event["pid"] == os.getpid() for event in events)
    assert durations_s["ready"] >= max(durations_s[stage] for stage in _STAGES[:-1])


def test_the_lock_is_free_again_afterwards(tmp_path: Path) -> None:
    plan = _plan(tmp_path)

    build_serially(_corridor_recipe(), plan)
    build_serially(_corridor_recipe(), plan)

    assert not (tmp_path / "construction.holder.json").exists()


def test_without_a_lock_nobody_waits(tmp_path: Path) -> None:
    plan = ConstructionPlan(role="probe", index=0, deadline_s=10.0, lock_path=None)

    with _held_by_another_process(tmp_path / "construction.lock"):
        env, _ = build_serially(_corridor_recipe(), plan)

    assert env.stack == 4


@pytest.mark.integration
def test_timeout_names_the_holder_and_its_stage(tmp_path: Path) -> None:
    plan = _plan(tmp_path, deadline_s=0.2)

    with _held_by_another_process(tmp_path / "construction.lock") as holder:
        expected = rf"held by actor-7 \(pid {holder.pid}\), in stage 'construct'"
        with pytest.raises(ConstructionTimeout, match=expected):
            build_serially(_corridor_recipe(), plan)

    last = _events(plan)[-1]
    assert (last["event"], last["stage"]) == ("failed", "lock")


@pytest.mark.integration
def test_the_lock_of_a_killed_process_is_taken_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with _held_by_another_process(tmp_path / "construction.lock") as holder:
        holder.kill()
        holder.wait(timeout=10)

    build_serially(_corridor_recipe(), _plan(tmp_path, deadline_s=1.0))

    assert "taken over from a dead process" in caplog.text


@pytest.mark.integration
def test_the_lock_passes_on_when_its_holder_ends(tmp_path: Path) -> None:
    plan = _plan(tmp_path, deadline_s=10.0)

    with _held_by_another_process(tmp_path / "construction.lock") as holder:
        assert holder.stdin is not None
        threading.Timer(0.2, holder.stdin.close).start()
        _, durations_s = build_serially(_corridor_recipe(), plan)

    assert durations_s["lock"] >= 0.1


def test_a_build_that_hangs_is_reported_with_its_stage() -> None:
    reported = threading.Event()
    messages: list[str] = []

    def on_overrun(message: str) -> None:
        messages.append(message)
        reported.set()

    def hang() -> CorridorEnv:
        assert reported.wait(timeout=5)
        return CorridorEnv()

    recipe = Recipe(prepare=lambda: None, construct=hang, reset=lambda env: env.reset())
    plan = ConstructionPlan(
        role="actor", index=3, deadline_s=0.05, lock_path=None, on_overrun=on_overrun
    )

    build_serially(recipe, plan)

    assert "actor-3 did not end within" in messages[0]
    assert "hangs in stage 'construct'" in messages[0]


@pytest.mark.integration
def test_a_process_that_hangs_while_building_ends_as_temporary() -> None:
    program = (
        "import time\n"
        "from actor.env.construction import ConstructionPlan, Recipe, build_serially\n"
        "recipe = Recipe(prepare=lambda: time.sleep(60), construct=None, reset=None)\n"
        "build_serially(recipe, ConstructionPlan("
        "role='actor', index=0, deadline_s=0.1, lock_path=None))\n"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=_ROOT, timeout=30, check=False, capture_output=True
    )

    assert ended.returncode == 75
    assert b"hangs in stage 'import'" in ended.stderr
    assert b"most recent call first" in ended.stderr


def test_a_failure_is_recorded_and_frees_the_lock(tmp_path: Path) -> None:
    def fail() -> CorridorEnv:
        raise EnvironmentFailed("no emulator today")

    plan = _plan(tmp_path)
    recipe = Recipe(prepare=lambda: None, construct=fail, reset=lambda env: env.reset())

    with pytest.raises(EnvironmentFailed, match="no emulator today"):
        build_serially(recipe, plan)

    last = _events(plan)[-1]
    assert (last["event"], last["stage"]) == ("failed", "construct")
    assert last["error"] == "EnvironmentFailed: no emulator today"
    build_serially(_corridor_recipe(), plan)


def test_a_failed_reset_closes_the_environment(tmp_path: Path) -> None:
    closed: list[bool] = []

    class ClosingEnv(CorridorEnv):
        def close(self) -> None:
            closed.append(True)

    def fail(_: object) -> None:
        raise EnvironmentFailed("no start screen")

    recipe = Recipe(prepare=lambda: None, construct=ClosingEnv, reset=fail)

    with pytest.raises(EnvironmentFailed):
        build_serially(recipe, _plan(tmp_path))

    assert closed == [True]


def test_start_delay_comes_before_the_lock(tmp_path: Path) -> None:
    plan = ConstructionPlan(
        role="actor", index=0, deadline_s=5.0, lock_path=tmp_path / "lock", start_delay_s=0.05
    )

    _, durations_s = build_serially(_corridor_recipe(), plan)

    assert durations_s["start"] >= 0.05


def test_an_unreadable_note_is_an_unknown_holder(tmp_path: Path) -> None:
    lock = HostLock(tmp_path / "construction.lock", role="actor", index=0)
    (tmp_path / "construction.holder.json").write_text('{"pid": 1')

    assert lock.holder() is None


def test_the_default_lock_is_private_to_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))

    path = default_lock_path()

    assert path == default_lock_path()
    assert path.parent.stat().st_mode & 0o777 == 0o700
