"""The doctor on a small run whose files are damaged one after the other."""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from common.errors import CheckpointMissing
from common.file_lock import lock_holder
from common.resume import find_resume, mark_best
from common.run_paths import RunPaths
from common.settings_files import load_settings
from common.trace_log import Circumstances, TraceLog
from launch.doctor import main
from launch.run_dir import locked, write_config
from launch.run_health import users_of
from learner.assembly import build_learner
from learner.checkpoint import checkpoint_of, write_checkpoint
from learner.checkpoint_worker import checker, what_is_wrong
from replay_server.cut_files import CutFolder
from tests.checkpoint_factory import damage, flip_byte, seal_checkpoint
from tests.cut_factory import cut_of, fill, make_buffer
from tests.native.recorded_clears import read_clears
from tests.run_factory import corridor_settings

NEWEST = "checkpoints/00000000002"
DEAD_PID = 2**22 + 1
"""Above the largest process id of Linux."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = corridor_settings(tmp_path_factory.mktemp("runs"))
    paths = RunPaths.of(settings.run)
    paths.root.mkdir(parents=True)
    write_config(paths, settings)
    learner = build_learner(settings)
    for agent_steps in (1, 2):
        write_checkpoint(paths.checkpoints, checkpoint_of(learner, agent_steps=agent_steps, run={}))
    mark_best(paths.checkpoints, "00000000002")
    for name in ("metrics", "eval", "stages", "heartbeat", "heartbeats/actor-0"):
        path = paths.root / f"{name}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"time": 1.5}\n' * 3)
    return paths.root


@pytest.fixture
def run(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sound, tmp_path / "run"))


def contents(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def _worker_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading torch anew for every case would take most of the time; one test starts it."""

    def run_here(module: str, jobs: list[dict[str, object]]) -> Iterator[dict[str, object]]:
        assert module == "learner.checkpoint_worker"
        config, required = Path(str(jobs[0]["config"])), jobs[0]["required"]
        settings = load_settings(config) if config.name else None
        check = checker(settings, required)  # type: ignore[arg-type] # names
        for path in jobs[0]["checkpoints"]:  # type: ignore[attr-defined] # names
            problem, fits = what_is_wrong(Path(path), check)
            yield {"checkpoint": path, "problem": problem, "fits": fits}

    monkeypatch.setattr("launch.doctor.run_workers", run_here)


def poison(run: Path) -> None:
    path = run / NEWEST / "network.safetensors"
    tensors = load_file(path)
    next(iter(tensors.values())).fill_(torch.nan)
    save_file(tensors, path)
    seal_checkpoint(path.parent, 2)


def change_network(run: Path) -> None:
    config = run / "config.json"
    config.write_text(config.read_text().replace('"num_quantiles": 4', '"num_quantiles": 8'))


def leave_temporary(run: Path) -> None:
    name = f".tmp-checkpoint-{socket.gethostname()}-{DEAD_PID}-ab"
    (run / "checkpoints" / name).mkdir()


def abandon(run: Path) -> None:
    shutil.copytree(run / NEWEST, run / "checkpoints" / "abandoned-00000000002-ab")


def write(name: str, text: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        (run / name).parent.mkdir(exist_ok=True)
        (run / name).write_text(text)

    return change


DAMAGE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "flipped": (lambda run: damage(run / NEWEST), NEWEST, "sha256 of network"),
    "no manifest": (lambda run: (run / NEWEST / "manifest.json").unlink(), NEWEST, "manifest"),
    "not finite": (poison, NEWEST, "finite"),
    "latest empty": (write("checkpoints/latest", ""), "checkpoints/latest", "does not hold"),
    "latest gone": (lambda run: (run / "checkpoints/latest").unlink(), "latest", "missing"),
    "latest old": (write("checkpoints/latest", "00000000001\n"), "latest", "older"),
    "best lost": (write("checkpoints/best", "00000000009\n"), "checkpoints/best", "no valid"),
    "evaluating": (write("checkpoints/evaluating", "x\n"), "checkpoints/evaluating", "no valid"),
    "config": (write("config.json", "{"), "config.json", "not valid json"),
    "metrics": (write("metrics.jsonl", '{"a":1}\n{"b":\n{"c":1}\n'), "metrics.jsonl", "line 2"),
    "torn": (write("eval.jsonl", '{"a":1}\n{"b"'), "eval.jsonl", "line 2: torn"),
    "beat": (write("heartbeats/actor-0.jsonl", "[]\n"), "heartbeats/actor-0.jsonl", "object"),
    "trace": (write("traces/actor-0.jsonl", '{"trace":5}\n'), "traces/actor-0.jsonl", "line 1"),
    "trace file": (write("traces/one.json", "{}"), "traces/one.json", "not a trace"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_named_and_mended_and_nothing_is_deleted(
    run: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    harm, where, problem = DAMAGE[case]
    harm(run)
    before = contents(run / "checkpoints")

    assert main([str(run)]) == 1
    line = next(one for one in capsys.readouterr().out.splitlines() if where in one)
    assert line.startswith("WRONG")
    assert problem in line

    left = 1 if case == "config" else 0
    assert main([str(run), "--repair"]) == 0
    assert contents(run) >= before
    assert main([str(run)]) == left
    point = find_resume(run)
    assert point is not None


def test_a_sound_run_is_healthy(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run)]) == 0

    assert capsys.readouterr().out == f"{run}: healthy (2 checkpoints, 5 files, 0 traces read)\n"


@pytest.mark.parametrize("harm", [leave_temporary, abandon])
def test_leftovers_are_noted_but_nothing_is_wrong(
    run: Path, harm: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    harm(run)

    assert main([str(run)]) == 0

    assert capsys.readouterr().out.startswith("note checkpoints/")


def test_a_checkpoint_of_another_network_is_told_and_left_where_it_is(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change_network(run)

    assert main([str(run), "--repair"]) == 1

    assert "does not fit this network" in capsys.readouterr().out
    assert (run / NEWEST).is_dir()


def test_a_run_without_any_valid_checkpoint_is_refused_after_the_repair(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("00000000001", "00000000002"):
        damage(run / "checkpoints" / name)

    assert main([str(run), "--repair"]) == 1

    assert "expected a checkpoint, got only 2 in quarantine" in capsys.readouterr().out
    assert not list((run / "checkpoints").iterdir())
    with pytest.raises(CheckpointMissing, match="quarantine"):
        find_resume(run)


def all_in_quarantine(run: Path) -> None:
    (run / "quarantine").mkdir()
    (run / "checkpoints").rename(run / "quarantine" / "checkpoints")


def a_file_for_checkpoints(run: Path) -> None:
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").touch()


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        (all_in_quarantine, "expected a checkpoint, got only 2 in quarantine"),
        (a_file_for_checkpoints, "expected a folder, got something else; move it"),
    ],
)
@pytest.mark.parametrize("metrics", [True, False])
def test_a_run_that_the_launcher_refuses_is_not_healthy(
    run: Path,
    harm: Callable[[Path], None],
    problem: str,
    metrics: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    harm(run)
    if not metrics:
        (run / "metrics.jsonl").unlink()

    assert main([str(run)]) == 1

    assert f"WRONG checkpoints: {problem}" in capsys.readouterr().out


def test_repair_keeps_the_good_lines_and_the_bad_ones(run: Path) -> None:
    (run / "metrics.jsonl").write_bytes(b'{"a":1}\n{"b\r\n{"c":1}\n{"d"')

    main([str(run), "--repair"])

    assert (run / "metrics.jsonl").read_bytes() == b'{"a":1}\n{"c":1}\n'
    (kept,) = run.glob("quarantine/*/metrics.jsonl")
    assert kept.read_bytes() == b'{"b\r\n{"d"\n'


def test_repair_refuses_a_run_that_is_in_use(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(run / NEWEST)

    with locked(RunPaths(run)):
        assert main([str(run), "--repair"]) == 2
        assert main([str(run)]) == 1

    said = capsys.readouterr()
    assert f"in use by process {os.getpid()}" in said.err
    assert "in use by launcher" in said.out
    assert (run / NEWEST).is_dir()
    assert lock_holder(RunPaths(run).lock) is None


def test_repair_refuses_a_run_whose_programs_live_without_a_launcher(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beat = {"time": 1e12, "pid": os.getpid()}
    (run / "heartbeats" / "learner-0.jsonl").write_text(json.dumps(beat) + "\n")

    assert main([str(run), "--repair"]) == 2

    assert f"learner-0 (process {os.getpid()})" in capsys.readouterr().err


def test_a_program_of_another_machine_does_not_keep_a_run_from_repair(run: Path) -> None:
    """Its heartbeats were brought home, and its number is that of somebody else here."""
    beat = {"time": 1e12, "pid": os.getpid(), "host": "elsewhere"}
    (run / "heartbeats" / "actor-1.jsonl").write_text(json.dumps(beat) + "\n")

    assert users_of(RunPaths(run)) == []


def test_the_line_that_is_being_written_is_not_judged(run: Path) -> None:
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"half')

    with locked(RunPaths(run)):
        assert main([str(run)]) == 0


def test_json_says_the_same(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damage(run / NEWEST)

    main([str(run), "--repair", "--json"])

    record = json.loads(capsys.readouterr().out)
    first = record["findings"][0]
    assert record["healthy"] is True
    assert (first["path"], first["wrong"], first["mended"]) == (NEWEST, True, True)
    assert Path(record["quarantine"], NEWEST).is_dir()


def test_traces_are_read(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = TraceLog(run / "traces" / "actor-0.jsonl")
    when = Circumstances(peer="actor-0", agent_steps=1, weight_version=1, episode_return=1.0)
    log.write(read_clears()[0], when)
    log.close()

    assert main([str(run)]) == 0
    assert "1 traces read" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["/nowhere"], ["/etc"], ["--json"]])
def test_what_is_no_run_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def save_replay(run: Path, shard: int = 0, shards: int = 1) -> Path:
    buffer = make_buffer()
    fill(buffer, range(3))
    root = RunPaths(run).replay_of(shard, shards)
    return CutFolder(root, buffer.storage).write(cut_of(buffer, 2))


def test_the_saved_replays_of_all_servers_are_read_too(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cuts = [save_replay(run), save_replay(run, 0, 2), save_replay(run, 1, 2)]
    whole = main([str(run)]), capsys.readouterr().out
    flip_byte(cuts[2] / "state.json", 30)

    assert whole[0] == 0
    assert "3 saved replays" in whole[1]
    assert main([str(run)]) == 1
    assert "WRONG replay-1-of-2/cuts/00000000002" in capsys.readouterr().out


@pytest.mark.parametrize("what", ["page", "cut"])
def test_a_damaged_saved_replay_is_told_and_moved(
    run: Path, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = save_replay(run)
    (page,) = (run / "replay" / "pages").iterdir()
    flip_byte(page if what == "page" else cut / "state.json", 30)

    assert main([str(run)]) == 1
    assert "WRONG replay/cuts/00000000002" in capsys.readouterr().out
    assert main([str(run), "--repair"]) == 0
    assert not cut.exists()
    assert list(run.glob("quarantine/*/replay/cuts/00000000002/manifest.json"))


def test_pointers_that_name_themselves_are_moved_once(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("latest", "best"):
        (run / "checkpoints" / name).write_text(name)

    main([str(run), "--repair"])

    assert "MENDED checkpoints/best" in capsys.readouterr().out
    assert (run / "checkpoints" / "latest").read_text().strip() == "00000000002"
    assert main([str(run)]) == 0
