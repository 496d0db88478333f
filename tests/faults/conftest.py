"""One line per fault: what is promised, what was measured, whether it held.

A test names its row with `@pytest.mark.fault(number, fault, promise)` and says what it saw through
the fixture `measured`; the table is printed at the end, and written with `--fault-table FILE`, but
only a whole one: a row without a test would otherwise vanish without a word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

Measured = Callable[[str], None]
BEGIN, FINISH = "<!-- faults -->\n", "<!-- end -->"
SOAK_ROW = 25
"""Half an hour: `make soak`."""
ROWS = frozenset(range(1, 38)) - {SOAK_ROW}


@dataclass(frozen=True, slots=True, order=True)
class Row:
    number: int
    fault: str
    promise: str
    measured: str
    verdict: str

    def line(self) -> str:
        return (
            f"| {self.number} | {self.fault} | {self.promise} | {self.measured} | {self.verdict} |"
        )


class FaultTable:
    """Collects the rows of all tests, also of those that ran in other processes."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said: dict[str, Any] = dict(report.user_properties)
        is_end = report.when == "call" or report.outcome != "passed"
        if "fault" not in said or not is_end:
            return
        number, fault, promise = said["fault"]
        verdict = {"passed": "holds", "failed": "BROKEN", "skipped": "skipped"}[report.outcome]
        measured = str(said.get("measured", "-"))
        self.rows.append(Row(number, fault, promise, measured, verdict))

    def lines(self) -> list[str]:
        head = ["| # | fault | promise | measured | verdict |", "|---:|---|---|---|---|"]
        return head + [row.line() for row in sorted(self.rows)]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.rows:
            terminalreporter.section("faults")
            for line in self.lines():
                terminalreporter.write_line(line)
        path = terminalreporter.config.getoption("fault_table")
        if path and (missing := self.missing()):
            rows = ", ".join(str(row) for row in missing)
            terminalreporter.write_line(f"{path} is not written: nothing ran for rows {rows}")
        elif path:
            write_table(Path(path), self.lines())

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Whoever asked for the whole table must not take a part of it for a success."""
        config = session.config
        is_part = bool(config.getoption("keyword"))
        is_worker = hasattr(config, "workerinput")
        if config.getoption("fault_table") and self.missing() and not (is_part or is_worker):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def missing(self) -> list[int]:
        return sorted(ROWS - {row.number for row in self.rows})


def write_table(path: Path, lines: list[str]) -> None:
    """Between the marks of a page that has them, else as a file of its own."""
    table = "\n".join(lines) + "\n"
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    before, begin, rest = page.partition(BEGIN)
    _, finish, after = rest.partition(FINISH)
    marked = f"{before}{begin}{table}{finish}{after}" if begin and finish else table
    path.write_text(marked, encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--fault-table", default="", help="file for the table of faults")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(FaultTable(), "fault-table")


@pytest.fixture(autouse=True)
def _named_row(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> None:
    marker = request.node.get_closest_marker("fault")
    if marker is not None:
        record_property("fault", list(marker.args))


@pytest.fixture
def measured(record_property: Callable[[str, object], None]) -> Measured:
    """Say in a few words what was seen."""
    return lambda text: record_property("measured", text)
