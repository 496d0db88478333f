"""Reads the tables of a Markdown page, for tests that compare documents with code."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def tables(path: Path) -> list[list[list[str]]]:
    """All tables of a page: rows of cells, the heading row first, the rule below it left out."""
    found: list[list[list[str]]] = []
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            found.append([])
            inside = True
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not all(set(cell) <= {"-", ":"} and cell for cell in cells) or not found[-1]:
            found[-1].append(cells)
    return found


def table_headed(path: Path, first_heading: str, second_heading: str) -> list[list[str]]:
    """The rows of the one table whose heading begins with these two words."""
    matching = [table for table in tables(path) if table[0][:2] == [first_heading, second_heading]]
    assert len(matching) == 1, f"{path.name}: {len(matching)} tables | {first_heading} | ..."
    return matching[0][1:]
