"""`launch/evaluate.py` and `launch/verify.py` as a person uses them, on a real emulator."""

from __future__ import annotations

import json
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
import torch

from common.config import Settings
from common.networks import build_network
from common.settings_files import settings_to_dict
from common.state_dicts import plain_state_dict
from common.trace_log import Circumstances, TraceLog
from common.traces import read_trace, write_trace
from tests.checkpoint_factory import write_playable_checkpoint
from tests.native.recorded_clears import FOLDER
from tests.processes import end, run, start

pytestmark = pytest.mark.integration

EVALUATE = "launch/evaluate.py"
VERIFY = "launch/verify.py"
WHEN = Circumstances(peer="actor-0", agent_steps=1, weight_version=1, episode_return=1.0)


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of Mario whose network has learned nothing, and is cut soon where it stands still."""
    root = tmp_path_factory.mktemp("runs") / "untrained"
    settings = Settings()
    settings = replace(settings, env=replace(settings.env, stagnation_seconds=2.0))
    torch.manual_seed(1)
    tensors = plain_state_dict(build_network("small", settings.spec, 32))
    write_playable_checkpoint(root / "checkpoints", 1_000, tensors, updates=7)
    (root / "config.json").write_text(json.dumps({"settings": settings_to_dict(settings)}))
    return root


@pytest.mark.parametrize("extra", [(), ("--sticky", "0.3")])
def test_the_same_seed_gives_the_same_episodes_whatever_the_processes(
    untrained: Path, extra: tuple[str, ...]
) -> None:
    words = (EVALUATE, str(untrained), "--episodes", "5", "--json", *extra)

    outputs = [run(*words, "--processes", number) for number in ("1", "3")]

    assert [code for code, _ in outputs] == [0, 0]
    first, second = (json.loads(output) for _, output in outputs)
    assert first["stages"] == second["stages"]
    assert first["stages"][0]["episodes"] == 5
    assert (first["global_step"], first["seed"]) == (1_000, 1)


def test_a_table_for_people(untrained: Path) -> None:
    code, output = run(EVALUATE, str(untrained), "--episodes", "2", "--stages", "1-1,1-2")

    assert code == 0
    assert "0 of 2" in output
    assert "1-2" in output
    assert "00000001000 at 1,000 agent steps" in output


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "which network"),
        (("no/such/run",), "does not exist"),
        (("RUN", "--stages", "9-9"), "unknown stage '9-9'"),
        (("RUN", "--episodes", "0"), "episodes must be"),
        (("RUN", "--sticky", "2"), "sticky"),
        (("RUN", "--processes", "-1"), "--processes"),
        (("RUN", "--seed", "-1"), "seed must be at least 0"),
        (("RUN", "--epsilon", "0.5"), "needs --mode epsilon"),
        (("RUN", "--stages", ","), "names no stage"),
        (("RUN", "--traces", "docs"), "must be a file"),
    ],
)
def test_wrong_words_are_refused_in_one_line(
    untrained: Path, words: tuple[str, ...], expected: str
) -> None:
    code, output = run(EVALUATE, *(str(untrained) if word == "RUN" else word for word in words))

    assert code == 2
    assert expected in output
    assert "Traceback" not in output


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_worker(untrained: Path, number: signal.Signals, code: int) -> None:
    process = start(EVALUATE, str(untrained), "--episodes", "5000", "--sticky", "0.5")
    try:
        deadline_s = time.monotonic() + 30
        while len(workers := psutil.Process(process.pid).children()) < 2:
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        time.sleep(2)
        process.send_signal(number)
        output, _ = process.communicate(timeout=20)
    finally:
        end(process)

    assert process.returncode == code
    assert "Traceback" not in output
    assert not any(worker.is_running() for worker in workers)


@pytest.mark.parametrize("core", ["nes_py", "native"])
def test_a_recorded_clear_verifies(core: str) -> None:
    code, output = run(VERIFY, str(FOLDER / "1-1.json"), "--core", core)

    assert (code, output.strip()) == (0, "1 of 1 traces reach the flag (1-1)")


def test_a_folder_of_clears_verifies() -> None:
    code, output = run(VERIFY, str(FOLDER), "--core", "native")

    assert code == 0
    assert "32 of 32 traces reach the flag" in output


def test_what_does_not_reach_the_flag_is_told(tmp_path: Path) -> None:
    clear = read_trace(FOLDER / "1-1.json")
    write_trace(tmp_path / "short.json", replace(clear, actions=clear.actions[:-9]))
    write_trace(tmp_path / "other.json", replace(clear, final_ram_sha256="0" * 64))
    (tmp_path / "torn.json").write_text('{"kind": "warpzone trace"')

    code, output = run(VERIFY, str(tmp_path), "--core", "native")

    assert code == 1
    assert "does not reach the flag" in output
    assert "another memory" in output
    assert "torn.json is not a trace" in output
    assert "0 of 3 traces" in output


def test_a_file_of_clears_is_read_whatever_its_name(tmp_path: Path) -> None:
    log = TraceLog(tmp_path / "clears.json")
    for _ in range(2):
        log.write(read_trace(FOLDER / "1-1.json"), WHEN)
    log.close()

    code, output = run(VERIFY, str(tmp_path / "clears.json"), "--core", "native")

    assert (code, output.strip()) == (0, "2 of 2 traces reach the flag (1-1)")


def test_a_run_without_clears_is_told(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")

    code, output = run(VERIFY, str(tmp_path))

    assert code == 2
    assert "no stage was cleared yet" in output


@pytest.mark.parametrize("place", ["README.md", "docs/models", "docs/models/1-1/config.json"])
def test_what_is_no_trace_is_refused(place: str) -> None:
    code, output = run(VERIFY, place)

    assert code == 2
    assert "a folder of traces" in output
