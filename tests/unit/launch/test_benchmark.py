from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from common.errors import BenchmarkFailed
from launch import benchmark
from launch.benchmark import BENCHES, BenchArgs, main
from launch.benchmarks.measure import Effort, Result, Row
from launch.benchmarks.report import Findings, as_json, machine_facts, show, write_csv


@pytest.fixture(autouse=True)
def _quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (0.0, 0.0, 0.0))


def _row(name: str, unit: str, median: float, ratio: float | None) -> Row:
    return Row(
        contender=name,
        unit=unit,
        median=median,
        low_quartile=median / 2,
        high_quartile=median * 2,
        ratio=ratio,
    )


def _shown(*rows: Row, notes: tuple[str, ...] = ()) -> list[str]:
    out = io.StringIO()
    show({"env": Result(list(rows), notes)}, Console(file=out, width=100))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_rates_are_shown_with_their_unit() -> None:
    row = _row("core", "frame/s", 2_000.0, 4.0)

    assert _shown(row)[2] == "core frame/s 2,000 1,000 - 4,000 4.00"


def test_times_have_a_scale_that_fits_them() -> None:
    long = _row("long", "s/frame", 0.25, 1.0)
    short = _row("short", "s/frame", 2e-6, 0.0123)
    longest = _row("start", "s", 12.5, None)

    lines = _shown(long, short, longest)

    assert lines[2] == "long ms/frame 250 125 - 500 1.00"
    assert lines[3] == "short us/frame 2.00 1.00 - 4.00 0.012"
    assert lines[4] == "start s 12.50 6.25 - 25.00"


def test_notes_stand_below_the_table() -> None:
    lines = _shown(_row("core", "frame/s", 1.0, 1.0), notes=("no [compiler]",))

    assert lines[-1] == "no [compiler]"


def test_json_has_the_rows_of_every_benchmark_the_notes_and_the_machine() -> None:
    result = Result([_row("core", "frame/s", 0.5, 1.0)], ("a note",))

    document = json.loads(json.dumps(as_json({"env": result}, machine_facts())))

    assert document["results"]["env"][0]["contender"] == "core"
    assert document["results"]["env"][0]["median"] == 0.5
    assert document["notes"] == ["a note"]
    assert document["machine"]["cores"] >= 1
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", document["machine"]["commit"])


@pytest.mark.parametrize("as_document", [False, True])
@pytest.mark.parametrize(("load", "is_told"), [(1.0, False), (1.01, True)])
def test_a_machine_that_is_busy_before_is_told_of_with_every_benchmark(
    load: float, is_told: bool, as_document: bool
) -> None:
    out, machine = io.StringIO(), {"cores": 2, "load_before": load}

    with Findings(["env"], machine, Console(file=out), as_document=as_document) as findings:
        findings.add("env", Result([], ("a note",)))

    assert ("other programs may have slowed this down" in out.getvalue()) == is_told
    assert "a note" in out.getvalue()


def test_a_csv_file_has_a_line_per_row_with_the_machine_in_it(tmp_path: Path) -> None:
    result = Result([_row("a", "s", 1.0, 1.0), _row("b", "s", 3.0, None)])

    path = write_csv(tmp_path / "new", "per", result, {"commit": "abc", "cores": 2})

    lines = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    assert path.name.startswith("bench_per_")
    assert [(line["contender"], line["median"], line["ratio"]) for line in lines] == [
        ("a", "1.0", "1.0"),
        ("b", "3.0", ""),
    ]
    assert {line["commit"] for line in lines} == {"abc"}


def test_a_benchmark_with_lines_of_its_own_writes_those(tmp_path: Path) -> None:
    result = Result([_row("a", "s", 1.0, 1.0)], lines=[{"mode": "lockstep", "num_envs": 2}])

    path = write_csv(tmp_path, "overlap", result, {"cores": 2})

    assert path.read_text(encoding="utf-8").split() == ["mode,num_envs,cores", "lockstep,2,2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "one of env, per, replay, weights, learner, actor, pipeline, overlap, star"),
        (["env", "--rounds", "-1"], "--rounds must be at least 0, got -1"),
        (["per", "--picture", "x.png"], "--picture belongs to pipeline, not to per"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pipeline", "--picture", "shares.bmp"], "--picture must end in .png or .svg"),
        (["pipeline", "--picture", "taken/shares.png"], "cannot write to the folder taken"),
        (["all", "--picture", "folder.svg"], "cannot write folder.svg: Is a directory"),
        (["per", "--csv", "taken"], "cannot write to the folder taken"),
        (["per", "--csv", "taken/deeper"], "cannot write to the folder taken/deeper"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_measured(
    words: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("")
    (tmp_path / "folder.svg").mkdir()
    monkeypatch.setattr(benchmark, "run_all", _never)

    assert main(words) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_a_picture_without_matplotlib_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("launch.benchmarks.outputs.find_spec", lambda _name: None)
    monkeypatch.setattr(benchmark, "run_all", _never)

    assert main(["all", "--picture", "shares.png"]) == 2
    assert "--picture needs matplotlib" in capsys.readouterr().err


def test_the_folder_that_overlap_writes_to_unasked_is_looked_at_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at: list[Path] = []
    monkeypatch.setattr(benchmark, "require_folder", looked_at.append)

    for name in ("per", "overlap"):
        benchmark.check_outputs([name], BenchArgs(name=name))

    assert looked_at == [Path()]


def _never(_names: Sequence[str], _args: BenchArgs) -> Iterator[tuple[str, Result]]:
    raise AssertionError("measured all the same")


def _measured_until(error: BaseException | None = None) -> object:
    """As `run_all`, whose first two benchmarks succeed."""

    def measured(names: Sequence[str], _args: BenchArgs) -> Iterator[tuple[str, Result]]:
        for name in names[:2]:
            yield name, Result([_row(f"row of {name}", "s", 1.0, None)], (f"note of {name}",))
        if error is not None:
            raise error

    return measured


def test_every_table_is_printed_as_soon_as_it_is_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []

    def measured(_names: Sequence[str], _args: BenchArgs) -> Iterator[tuple[str, Result]]:
        for name in ("env", "per"):
            printed.append(capsys.readouterr().out)
            yield name, Result([_row(f"row of {name}", "s", 1.0, None)])

    monkeypatch.setattr(benchmark, "run_all", measured)

    assert main(["all"]) == 0
    before, after_env = printed
    assert "cores" in before
    assert "row of env" in after_env
    assert "row of per" in capsys.readouterr().out


def test_what_was_measured_before_ctrl_c_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "run_all", _measured_until(KeyboardInterrupt()))

    assert main(["all"]) == 130
    said = capsys.readouterr()
    assert "row of env" in said.out
    assert "row of per" in said.out
    assert said.err.startswith("[benchmark] stopped; not measured: replay, weights, learner, actor")


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (BenchmarkFailed("the server ended"), 2)]
)
def test_json_is_one_document_of_what_there_is_whatever_ended_it(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(benchmark, "run_all", _measured_until(error))

    assert main(["all", "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert list(document["results"]) == ["env", "per"]
    *notes, missing = document["notes"]
    assert notes == ["note of env", "note of per"]
    assert missing.startswith("not measured: replay, weights")


def test_json_is_kept_by_a_benchmark_that_is_told_to_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "run_all", _measured_until(SystemExit(143)))

    with pytest.raises(SystemExit):
        main(["all", "--json"])

    assert list(json.loads(capsys.readouterr().out)["results"]) == ["env", "per"]


def test_nothing_is_said_to_be_missing_when_all_was_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "run_all", _measured_until())

    assert main(["env", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == ["note of env"]


def test_one_that_fails_does_not_keep_the_others_from_being_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def load(module: str) -> SimpleNamespace:
        def run(_effort: Effort) -> Result:
            if module.endswith("per"):
                raise BenchmarkFailed("the server ended")
            return Result([_row("core", "frame/s", 1.0, None)])

        return SimpleNamespace(run=run)

    monkeypatch.setattr(benchmark, "import_module", load)
    monkeypatch.setattr(benchmark, "load_torch", lambda: None)

    assert main(["all", "--json", "--csv", str(tmp_path)]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["notes"] == ["per failed: the server ended"]
    assert [name for name, rows in document["results"].items() if not rows] == ["per"]
    # What found nothing has no file.
    kept = {path.name.split("_")[1] for path in tmp_path.iterdir()}
    assert kept == document["results"].keys() - {"per"}
    assert main(["per"]) == 2


def test_all_leaves_out_what_is_about_many_machines_and_viewers() -> None:
    names = benchmark.chosen(BenchArgs())

    assert BENCHES.keys() - set(names) == {"watching", "cluster", "swarm"}


def test_a_result_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(Exception, match="cannot write"):
        write_csv(tmp_path / "file", "per", Result([_row("a", "s", 1.0, None)]), {})


def test_torch_is_loaded_with_threads_that_sleep_and_others_are_started_as_always(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policies: list[str | None] = []
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    before = dict(os.environ)

    def load(_threads: int) -> None:
        policies.extend(map(os.environ.get, ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")))

    monkeypatch.setattr(benchmark, "limit_torch_threads", load)

    benchmark.load_torch()

    assert policies == ["PASSIVE", "0"]
    assert dict(os.environ) == before


def test_every_benchmark_has_its_module() -> None:
    folder = Path(__file__).resolve().parents[3] / "launch" / "benchmarks"

    assert [name for name in BENCHES if not (folder / f"{name}.py").exists()] == []
