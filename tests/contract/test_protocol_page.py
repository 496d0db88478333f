"""docs/protocol.md says what `common/messages.py` says: tags, fields, limits, arrays."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest

from common.codec import DTYPE_CODES
from common.controls import PlayControls
from common.messages import (
    COUNTER_MAX,
    MESSAGES,
    PROTOCOL_VERSION,
    PeerId,
    Range,
    Record,
    RunName,
    Text,
)
from common.specs import DataSpec
from common.weights import WeightHeader
from tests.markdown_tables import DOCS, table_headed
from tests.message_factory import example_arrays

PAGE = DOCS / "protocol.md"
OVERVIEW = table_headed(PAGE, "tag", "from")
FIELDS = {row[0].strip("`"): row[1:] for row in table_headed(PAGE, "tag", "fields")}
NAMED_TYPES: dict[Any, str] = {
    PeerId: "peer id",
    RunName: "run name",
    Record: "record",
    DataSpec: "data spec",
    PlayControls: "play controls",
    bool: "bool",
}
PLAIN_TEXT = Text(1).pattern


def type_text(hint: Any) -> str:
    """A field type in the words of the page."""
    if hint in NAMED_TYPES:
        return NAMED_TYPES[hint]
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(get_args(hint))
    assert get_origin(hint) is Annotated
    base, rule = get_args(hint)
    if isinstance(rule, Text):
        word = "text" if rule.pattern == PLAIN_TEXT else "file name"
        return f"{word}, at most {rule.max_length}"
    assert isinstance(rule, Range)
    if base is int and rule.high == COUNTER_MAX:
        return f"count from {rule.low}" if rule.low else "count"
    if base is int:
        return f"int {rule.low} to {rule.high}"
    return f"float {rule.low:g} to {rule.high:g}"


def fields_text(kind: type) -> str:
    hints = get_type_hints(kind, include_extras=True)
    return "; ".join(f"`{item.name}` {type_text(hints[item.name])}" for item in fields(kind))


def test_overview_has_exactly_one_row_per_message() -> None:
    assert [row[0].strip("`") for row in OVERVIEW] == list(MESSAGES)


def test_overview_leaves_no_cell_empty() -> None:
    assert all(len(row) == 7 and all(row) for row in OVERVIEW)


def test_field_table_has_exactly_one_row_per_message() -> None:
    rows = table_headed(PAGE, "tag", "fields")

    assert [row[0].strip("`") for row in rows] == list(MESSAGES)


@pytest.mark.parametrize("tag", MESSAGES)
def test_fields_and_limits_are_those_of_the_message(tag: str) -> None:
    assert FIELDS[tag][0] == (fields_text(MESSAGES[tag]) or "none")


@pytest.mark.parametrize("tag", MESSAGES)
def test_arrays_have_the_names_types_and_dimensions_of_the_message(tag: str) -> None:
    listed = re.findall(r"`(\w+)` (\w\d) \[([^\]]*)\]", FIELDS[tag][1])

    arrays = example_arrays(tag)
    assert [name for name, _, _ in listed] == list(MESSAGES[tag].arrays)
    for name, code, sides in listed:
        assert code == DTYPE_CODES[arrays[name].dtype.str], name
        assert len(sides.split(",")) == arrays[name].ndim, name


def test_weights_header_fields_are_those_of_the_code() -> None:
    rows = {row[0].strip("`"): row[1] for row in table_headed(PAGE, "header key", "value")}

    assert rows["f"] == fields_text(WeightHeader)


def test_page_is_about_this_version() -> None:
    assert f"version {PROTOCOL_VERSION}." in PAGE.read_text(encoding="utf-8")
