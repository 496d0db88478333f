"""Tables for people, laid out the same by all commands: text to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from rich.table import Table
from rich.text import Text


def make_table(
    titles: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: Collection[str] = (),
    folds: Collection[str] = (),
    title: str = "",
) -> Table:
    """Columns named in `texts` hold words; those in `folds` give way when the terminal is narrow.

    Cells are shown as they are: a name with brackets is no style.
    """
    table = Table(title=title or None, title_justify="left", box=None)
    for name in titles:
        table.add_column(
            name,
            justify="left" if name in texts else "right",
            no_wrap=bool(folds) and name not in folds,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*map(Text, row))
    return table
