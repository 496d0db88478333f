"""Starts that are refused after the run folder was opened, and odd but usable surroundings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from common.file_lock import lock_holder
from common.run_paths import RunPaths
from tests.checkpoint_factory import damage, write_small_checkpoint
from tests.key_factory import make_server_keys
from tests.process_system import free_endpoints
from tests.processes import ROOT, end, run, start, write_corridor
from tests.small_disk import small_disk_at
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

DEADLINE_S = 200
"""Of every wait; a program needs seconds, but other tests may have the cores."""
Harm = Callable[[Path], object]


def store(run_dir: Path, learner: Mapping[str, object]) -> None:
    settings = {"settings": {"env": {"game": "corridor"}, "learner": dict(learner)}}
    (run_dir / "config.json").write_text(json.dumps(settings))
    write_small_checkpoint(run_dir / "checkpoints", 5)


REFUSED: dict[str, tuple[Harm, list[str], str]] = {
    "nothing to resume": (lambda _: None, ["--resume"], "no checkpoint below"),
    "resume from nowhere": (lambda _: None, ["--resume", "/nowhere"], "holds no checkpoint"),
    "resume from a name too long": (lambda _: None, ["--resume", "z" * 300], "run directory"),
    "lock is a folder": (
        lambda run: (run / "launcher.lock").mkdir(),
        [],
        "mend or move it, or choose another --run",
    ),
    "all checkpoints damaged": (
        lambda run: damage(write_small_checkpoint(run / "checkpoints", 5)),
        [],
        "expected a valid checkpoint, got 1 corrupt",
    ),
    "all checkpoints in quarantine": (
        lambda run: write_small_checkpoint(run / "quarantine" / "x" / "checkpoints", 5),
        [],
        "in quarantine or abandoned",
    ),
    "checkpoints is a file": (lambda run: (run / "checkpoints").touch(), [], "expected a folder"),
    "other shape": (
        lambda run: store(run, {"num_quantiles": 8}),
        ["--num-quantiles", "16"],
        "--num-quantiles was 8 in this run and cannot become 16",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_start_is_refused_with_one_line(case: str, tmp_path: Path) -> None:
    harm, words, expected = REFUSED[case]
    run_dir = tmp_path / "runs" / "default"
    run_dir.mkdir(parents=True)
    harm(run_dir)
    base = ["--runs-dir", str(tmp_path / "runs"), "--device", "cpu", "--game", "corridor"]

    code, output = run("launch/local.py", *base, *words, timeout_s=DEADLINE_S)

    assert code == 2, output
    last = output.splitlines()[-1]
    assert last.startswith("python launch/local.py: ")
    assert expected in last
    assert "Traceback" not in output


def test_a_refused_resume_leaves_nothing_behind(tmp_path: Path) -> None:
    base = ["--runs-dir", str(tmp_path / "runs"), "--device", "cpu", "--game", "corridor"]

    code, output = run("launch/local.py", *base, "--resume", timeout_s=DEADLINE_S)

    assert code == 2, output
    assert list(tmp_path.iterdir()) == []


def test_a_full_run_folder_is_refused(tmp_path: Path) -> None:
    words = ("launch/local.py", "--runs-dir", str(tmp_path), "--device", "cpu")
    with small_disk_at(tmp_path, 8_192):
        code, output = run(*words, timeout_s=DEADLINE_S)

    assert code == 2, output
    assert "No space left on device; choose another --runs-dir" in output.splitlines()[-1]


def test_an_odd_folder_behind_a_link_on_a_dumb_terminal_without_stdout(tmp_path: Path) -> None:
    """Spaces, another script and a leading dash in the path; nobody can read what is printed."""
    real = tmp_path / "-läufe und mehr"
    real.mkdir()
    (tmp_path / "runs").symlink_to(real)
    words = ["--preset", str(write_corridor(tmp_path)), "--runs-dir", str(tmp_path / "runs")]
    words += ["--actors", "1", "--max-agent-steps", "200", "--run", "odd"]
    environment = {**os.environ, "TERM": "dumb", "OMP_NUM_THREADS": "7", "PYTHONHASHSEED": "3"}

    result = subprocess.run(
        ["sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "launch/local.py", *words],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert result.returncode == 0, result.stderr
    assert list((real / "odd" / "checkpoints").glob("*/manifest.json"))


@pytest.mark.parametrize(
    ("module", "words", "expected"),
    [
        ("replay_server", ["--replay-endpoint", "tcp://*:5601"], "it is not loopback"),
        ("replay_server", ["--replay-endpoint", "tcp://0.0.0.0:5601"], "it is not loopback"),
        ("replay_server", ["--capacity", "100000000000"], "the largest capacity that would fit is"),
        ("learner", ["--log-file", "/dev/null/x"], "or choose another --log-file"),
        ("learner", ["--device", "cuda:9"], "use --device cpu"),
        ("actor", ["--config", "settings.yaml"], "from .toml or .json files"),
    ],
)
def test_a_program_started_by_hand_is_refused(
    module: str, words: list[str], expected: str, tmp_path: Path
) -> None:
    base = ["-m", module, "--runs-dir", str(tmp_path), "--game", "corridor"]
    device = [] if "--device" in words or module == "actor" else ["--device", "cpu"]

    code, output = run(*base, *device, *words, timeout_s=DEADLINE_S)

    assert code == 2, output
    assert expected in output.splitlines()[-1]
    assert "Traceback" not in output


def test_a_host_that_nobody_knows_ends_a_program_until_it_is_known(tmp_path: Path) -> None:
    endpoint = "tcp://no.such.host.invalid:5601"
    words = ["--runs-dir", str(tmp_path), "--game", "corridor", "--replay-endpoint", endpoint]
    keys = ["--keys-dir", make_server_keys(tmp_path / "keys")]

    code, output = run("-m", "actor", *words, *keys, timeout_s=DEADLINE_S)

    assert code == 75, output
    assert endpoint in output.splitlines()[-1]
    assert "correct the name, give the address instead" in output.splitlines()[-1]


def test_a_second_learner_of_a_run_is_refused_also_on_other_ports(tmp_path: Path) -> None:
    run_dir = tmp_path / "default"
    run_dir.mkdir()
    base = ["-m", "learner", "--runs-dir", str(tmp_path), "--game", "corridor", "--device", "cpu"]
    first, second = (
        [f"--{name.replace('_', '-')}={address}" for name, address in free_endpoints().items()]
        for _ in range(2)
    )
    process = start(*base, *first)
    try:
        lock = RunPaths(run_dir).role_lock("learner")
        wait_until("the first has the lock", lambda: lock_holder(lock) is not None, DEADLINE_S)

        code, output = run(*base, *second, timeout_s=DEADLINE_S)
    finally:
        end(process)

    assert code == 2, output
    expected = f"run 'default' has a learner already: process {process.pid}; stop it"
    assert expected in output.splitlines()[-1]
    assert lock_holder(lock) is None


def test_more_actors_than_files_may_be_open_are_refused_before_anything_is_made(
    tmp_path: Path,
) -> None:
    words = ["--actors", "500", "--runs-dir", str(tmp_path), "--device", "cpu"]
    script = 'ulimit -n 256 && exec "$0" launch/local.py --game corridor "$@"'

    result = subprocess.run(
        ["sh", "-c", script, sys.executable, *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert result.returncode == 2, result.stderr
    (line,) = result.stderr.splitlines()
    assert "open files, and this shell allows 256" in line
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_text_is_refused_with_one_line(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")

    code, output = run("launch/local.py", "--runs-dir", odd, timeout_s=DEADLINE_S)

    assert (code, len(output.splitlines())) == (2, 1), output
    assert "--runs-dir must be a folder" in output


def test_a_terminal_that_knows_only_ascii_gets_escapes(tmp_path: Path) -> None:
    words = ["--preset", str(write_corridor(tmp_path)), "--runs-dir", str(tmp_path / "空")]
    words += ["--actors", "1", "--max-agent-steps", "200", "--plain"]

    code, output = run(
        "launch/local.py", *words, timeout_s=DEADLINE_S, env={"PYTHONIOENCODING": "ascii"}
    )

    assert code == 0, output
    assert "results: " in output
