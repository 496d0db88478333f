from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

from tests import compat
from tests.compat import (
    ROOT,
    SETS,
    CompatArgs,
    Environment,
    constraints,
    examine,
    main,
    pinned,
    reason_in,
    run_words,
)


def test_a_set_changes_what_it_names_and_nothing_else() -> None:
    lines = constraints({"numpy": "1.26.4", "nes-py": "8.2.0"})
    before = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    assert set(before) - set(lines) == {f"numpy=={pinned('numpy')}", "nes_py==8.2.1"}
    assert set(lines) - set(before) == {"numpy==1.26.4", "nes-py==8.2.0"}


def test_the_oldest_set_is_that_of_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = {
        re.split(r"[<>=]", entry)[0]: entry.partition(">=")[2].partition(",")[0]
        for entry in project["dependencies"]
    }
    # torch is a parameter; of these two the bound is the newest that can be installed.
    elsewhere = {"torch", "nes-py", "gym-super-mario-bros"}

    assert SETS["oldest"].keys() == bounds.keys() - elsewhere
    for name, version in SETS["oldest"].items():
        assert version.startswith(bounds[name]), name


def test_every_set_is_one_of_supported_versions() -> None:
    assert SETS["pinned"] == {}
    assert SETS["numpy-1.26"]["numpy"].startswith("1.26.")
    assert int(pinned("numpy").partition(".")[0]) == 2


def test_an_unknown_set_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--sets", "newest"]) == 2
    assert "--sets must be of pinned" in capsys.readouterr().err


def test_what_went_wrong_is_told_in_one_line(tmp_path: Path) -> None:
    python = sys.executable

    assert run_words([python, "-c", "print('fine')"], tmp_path, 60) == ""
    assert run_words([python, "-c", "raise SystemExit('bad')"], tmp_path, 60) == "bad"
    assert run_words([python, "-c", "raise SystemExit(3)"], tmp_path, 60) == "exit code 3"
    assert run_words([python, "-c", "import time; time.sleep(60)"], tmp_path, 0.1) == (
        "not done within 0 s"
    )


def test_the_launchers_own_reason_counts_more_than_its_last_line() -> None:
    output = "the run ended: learner-0 keeps failing (exit code 75)\nlast lines\ncheckpoint: none\n"

    assert reason_in(output, 75) == "the run ended: learner-0 keeps failing (exit code 75)"
    assert reason_in("\n", 3) == "exit code 3"


def environment(name: str, folder: Path, python: str = sys.executable) -> Environment:
    runs = folder / name
    runs.mkdir()
    return Environment(name=name, python=Path(python), runs=runs)


def test_the_first_failure_of_several_attempts_stays(tmp_path: Path) -> None:
    one = environment("a", tmp_path)

    assert not one.attempt("reads all", ["-c", "raise SystemExit('bad')"])
    assert one.attempt("reads all", ["-c", "pass"])

    assert one.outcomes == {"reads all": "bad"}
    assert not one.is_sound


def test_each_reads_all_and_goes_on_from_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With commands that only note what they were asked."""
    asked: list[tuple[str, str]] = []

    def note(self: Environment, what: str, words: list[str], _: float = 0) -> bool:
        (self.runs / what / "checkpoints" / "00000001000").mkdir(parents=True, exist_ok=True)
        paths = [word for word in words if word.startswith(str(tmp_path))]
        asked.append((f"{self.name} {what}", Path(paths[-1]).parent.name))
        self.outcomes[what] = "ok"
        return True

    monkeypatch.setattr(Environment, "attempt", note)
    monkeypatch.setattr(compat, "list_numbered", lambda path: list(path.iterdir()))
    broken = environment("c", tmp_path)
    broken.outcomes["install"] = "bad"

    examine([environment("a", tmp_path), environment("b", tmp_path), broken], Console(quiet=True))

    reads = [pair for pair in asked if pair[0].endswith("reads all")]
    assert reads == [
        ("a reads all", "a"),
        ("a reads all", "b"),
        ("b reads all", "a"),
        ("b reads all", "b"),
    ]
    assert [pair for pair in asked if "resumed" in pair[0]] == [
        ("a resumed", "b"),
        ("b resumed", "a"),
    ]
    assert not any(name.startswith("c") for name, _ in asked)


def test_the_pinned_torch_is_the_default() -> None:
    assert CompatArgs().torch == ()
    assert pinned("torch") == "2.13.0"
