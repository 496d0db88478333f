"""docs/configuration.md lists every flag with its default and meaning, and no other."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields

import pytest

from common.config_checks import flag_of
from launch.options import preset_names, preset_path
from tests.configuration_table import (
    CLUSTER_DOC,
    CONFIGURATION_DOC,
    PROGRAMS,
    block_in,
    cluster_blocks,
    expected_blocks,
    meanings_of,
    sections,
)

TEXT = CONFIGURATION_DOC.read_text(encoding="utf-8")
REMEDY = "run `python -m tests.configuration_table` and read the difference"


@pytest.mark.parametrize("name", list(expected_blocks()))
def test_tables_are_those_of_the_code(name: str) -> None:
    assert block_in(TEXT, name) == expected_blocks()[name], REMEDY


def test_the_table_of_the_cluster_is_that_of_the_code() -> None:
    text = CLUSTER_DOC.read_text(encoding="utf-8")

    assert {name: block_in(text, name) for name in cluster_blocks()} == cluster_blocks(), REMEDY


def test_every_setting_has_a_meaning() -> None:
    kinds = [*sections().values(), *PROGRAMS.values()]

    bare = {
        item.name
        for kind in kinds
        for item in fields(kind)
        if item.name != "settings" and item.name not in meanings_of(kind)
    }

    assert bare == set()


def test_setting_names_are_unique_because_each_is_a_flag() -> None:
    names = [item.name for kind in sections().values() for item in fields(kind)]

    assert len(names) == len(set(names))


def test_no_flag_is_mentioned_that_no_program_has() -> None:
    kinds = [*sections().values(), *PROGRAMS.values()]
    known = {flag_of(item.name) for kind in kinds for item in fields(kind)}
    known |= {flag_of(f"no_{item.name}") for kind in kinds for item in fields(kind)}

    mentioned = set(re.findall(r"--[a-z][a-z0-9-]*", re.sub(r"<!--.*?-->", "", TEXT)))

    assert mentioned - known - {"--help"} == set()


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_described_with_what_it_changes(name: str) -> None:
    values = tomllib.loads(preset_path(name).read_text(encoding="utf-8"))
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{name}` |")]

    expected = {
        f"`{key} = {str(value).lower() if isinstance(value, bool) else value}`"
        for section in values.values()
        for key, value in section.items()
    }

    assert expected == set(re.findall(r"`[a-z0-9_]+ = [^`]+`", row))
