"""The table itself: a promise that breaks must show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.conftest import write_table

pytest_plugins = ["pytester"]

SUITE = """
import pytest

@pytest.mark.fault(2, "hang", "replaced")
def test_holds(measured):
    measured("after 3 s")

@pytest.mark.fault(1, "kill", "comes back")
def test_breaks(measured):
    measured("never")
    assert False

@pytest.mark.fault(3, "cut", "noticed")
def test_skips():
    pytest.skip("needs root")
"""


def run_suite(
    pytester: pytest.Pytester, request: pytest.FixtureRequest, rows: str, *words: str
) -> pytest.RunResult:
    table = (request.path.parent / "conftest.py").read_text()
    pytester.makeconftest(f"{table}\nROWS = {rows}\n")
    pytester.makeini("[pytest]\nmarkers = fault(number, fault, promise): a row")
    pytester.makepyfile(SUITE)
    return pytester.runpytest_subprocess("--fault-table", "table.md", "-p", "no:xdist", *words)


@pytest.mark.parametrize(("words", "code"), [((), 1), (("-k", "holds"), 0)])
def test_a_part_of_the_table_is_not_written(
    pytester: pytest.Pytester, request: pytest.FixtureRequest, words: tuple[str, ...], code: int
) -> None:
    breaks = f"{request.node.originalname}.py::test_breaks"

    result = run_suite(pytester, request, "frozenset({2, 4})", "--deselect", breaks, *words)

    assert not (pytester.path / "table.md").exists()
    assert "is not written: nothing ran for rows 4" in result.stdout.str()
    assert result.ret == code


def test_every_row_has_its_verdict(
    pytester: pytest.Pytester, request: pytest.FixtureRequest
) -> None:
    result = run_suite(pytester, request, "frozenset({1, 2, 3})")

    assert result.ret == 1
    rows = (pytester.path / "table.md").read_text().splitlines()[2:]
    assert rows == [
        "| 1 | kill | comes back | never | BROKEN |",
        "| 2 | hang | replaced | after 3 s | holds |",
        "| 3 | cut | noticed | - | skipped |",
    ]


def test_a_page_keeps_what_stands_around_the_table(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Before\n<!-- faults -->\nold\n<!-- end -->\nafter\n")

    write_table(page, ["| new |"])

    assert page.read_text() == "# Before\n<!-- faults -->\n| new |\n<!-- end -->\nafter\n"
