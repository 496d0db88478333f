"""docs/metrics.md says what the registry says, one row per metric."""

from __future__ import annotations

from common.metrics import METRICS
from tests.markdown_tables import DOCS, table_headed

ROWS = table_headed(DOCS / "metrics.md", "name", "unit")


def test_page_has_exactly_one_row_per_metric_in_the_order_of_the_registry() -> None:
    assert [row[0] for row in ROWS] == [f"`{metric.name}`" for metric in METRICS]


def test_rows_have_the_unit_kind_and_meaning_of_the_registry() -> None:
    expected = [[metric.unit or "-", metric.kind, metric.meaning] for metric in METRICS]

    assert [[row[1], row[2], row[4]] for row in ROWS] == expected


def test_every_row_says_who_emits_it_and_what_is_healthy() -> None:
    assert all(len(row) == 6 and all(row) for row in ROWS)


def test_names_in_the_registry_are_unique() -> None:
    names = [metric.name for metric in METRICS]

    assert len(names) == len(set(names))
