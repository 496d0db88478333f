from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_type_hints

import pytest

from common.config import Settings
from common.environment import (
    KEPT_NAMES,
    OTHER_VARIABLES,
    Given,
    blamed,
    given_settings,
    given_values,
    has_bootstrap,
    read_value,
    unknown_variables,
    variable_of,
)
from common.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]


def values(**environment: str) -> dict[str, object]:
    return {one.field: one.value for one in given_settings(environment)}


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("RUN_NAME", "first", "run", "first"),
        ("ACTION_TYPE", "COMPLEX", "actions", "complex"),
        ("ACTION_TYPE", "right", "actions", "right_only"),
        ("ACTION_TYPE", "Right-Only", "actions", "right_only"),
        ("REWARD_DISTANCE_WEIGHT", "0.12", "reward_distance_weight", 0.12),
        ("REWARD_SCALE_START", "1", "reward_scale_start", 1.0),
        ("REWARD_SCALE_FINAL", " .5 ", "reward_scale_final", 0.5),
        ("REWARD_SCALE_ANNEAL_STEPS", "80_000", "reward_scale_anneal_steps", 80_000),
        ("SCRIPTED_SEQUENCE", "RIGHT+B:180,A:8", "scripted_sequence", "RIGHT+B:180,A:8"),
        ("SCRIPTED_FORWARD_FRAMES", "32", "scripted_forward_frames", 32),
        ("FORWARD_ACTION_ID", "-1", "forward_action_id", -1),
        ("PROBE_FORWARD", "24", "probe_forward_actions", 24),
        ("ENABLE_RAM_X_PARSE", "1", "enable_ram_x_parse", True),
        ("RAM_X_HIGH", "0x6E", "ram_x_high_addr", "0x6E"),
        ("RAM_X_LOW", "135", "ram_x_low_addr", "135"),
        ("TOTAL_UPDATES", "1000", "max_updates", 1000),
        ("MARIO_PER_FP16_SCALARS", "0", "float16_scalars", False),
        ("MARIO_BATCH_SIZE", "0x40", "batch_size", 64),
        ("MARIO_NETWORK", "nature", "network", "nature"),
        ("MARIO_HINTS", "Off", "hints", False),
    ],
)
def test_a_variable_gives_the_value_that_a_toml_file_would(
    variable: str, text: str, field: str, value: object
) -> None:
    found = values(**{variable: text})

    assert found == {field: value}
    assert type(found[field]) is type(value)


def test_every_setting_has_a_variable_of_its_own() -> None:
    kinds = [type(getattr(Settings(), item.name)) for item in fields(Settings)]
    settings = [name for kind in kinds for name in get_type_hints(kind)]
    variables = {variable_of(name) for name in settings}

    assert len(variables) == len(settings)
    assert not variables & OTHER_VARIABLES
    assert KEPT_NAMES.keys() - set(settings) == {"auto_mem"}


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_variable_is_not_set(text: str) -> None:
    assert values(RUN_NAME=text, MARIO_ACTORS=text) == {}
    assert not has_bootstrap({"BOOTSTRAP": text})


@pytest.mark.parametrize("text", ["1", "true", "TRUE", "yes", "on"])
def test_a_switch_is_on_in_these_words(text: str) -> None:
    assert has_bootstrap({"BOOTSTRAP": text})
    assert given_values(type(Settings().diagnosis), {"MARIO_PARQUET": text}) == {"parquet": True}


@pytest.mark.parametrize("text", ["0", "false", "No", "off"])
def test_a_switch_is_off_in_these_words(text: str) -> None:
    assert not has_bootstrap({"BOOTSTRAP": text})
    assert values(MARIO_PARQUET=text) == {"parquet": False}


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        ("MARIO_ACTORS", "many", "MARIO_ACTORS: expected a whole number, got 'many'"),
        ("MARIO_ACTORS", "1.5", "MARIO_ACTORS: expected a whole number, got '1.5'"),
        ("REWARD_SCALE_START", "half", "REWARD_SCALE_START: expected a number, got 'half'"),
        ("ENABLE_RAM_X_PARSE", "maybe", "ENABLE_RAM_X_PARSE: expected one of 1, true, yes, on, 0,"),
        (
            "MARIO_NETWORK",
            "huge",
            "MARIO_NETWORK: expected one of small, nature, impala, got 'huge'",
        ),
    ],
)
def test_a_bad_value_is_refused_with_variable_expected_and_given(
    variable: str, text: str, expected: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)):
        given_settings({variable: text})


def test_a_bad_word_for_bootstrap_is_refused() -> None:
    with pytest.raises(ConfigError, match="BOOTSTRAP: expected one of"):
        has_bootstrap({"BOOTSTRAP": "perhaps"})


def test_text_is_taken_as_it_stands() -> None:
    assert read_value("MARIO_RUNS_DIR", " a b ", str) == " a b "


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("MARIO_ACTROS", "did you mean MARIO_ACTORS?"),
        ("MARIO_REWARD_SCALE_START", "did you mean REWARD_SCALE_START?"),
        ("MARIO_QQQQQQQQQ", "docs/configuration.md lists them"),
    ],
)
def test_a_variable_that_nobody_reads_is_told_with_the_nearest(name: str, hint: str) -> None:
    known = {"MARIO_ACTORS", "REWARD_SCALE_START"}

    (line,) = unknown_variables({name: "1", "PATH": "x", "MARIO_ACTORS": "2"}, known)

    assert line == f"{name} is not read by anything; {hint}"


@pytest.mark.parametrize("name", sorted(OTHER_VARIABLES))
def test_variables_that_are_no_settings_are_known(name: str) -> None:
    assert list(unknown_variables({name: "1"}, ())) == []


def test_every_variable_in_the_code_is_known() -> None:
    """A new MARIO_ variable that is no setting must be listed, or the launcher warns of it."""
    sources = [
        path.read_text(encoding="utf-8")
        for package in ("actor", "common", "launch", "learner", "replay_server")
        for path in (ROOT / package).rglob("*.py")
    ]

    used = {name for text in sources for name in re.findall(r'"(MARIO_[A-Z_]+[A-Z])"', text)}

    assert used <= OTHER_VARIABLES


def test_a_refusal_names_the_variable_whose_flag_it_names() -> None:
    given = [Given(variable="MARIO_CAPACITY", section="replay", field="capacity", value=100)]

    known = blamed(ConfigError("environment: --capacity must be at least --x (5), got 1"), given)
    other = blamed(ConfigError("environment: --learning-starts must be 3"), given)

    assert str(known) == "MARIO_CAPACITY: --capacity must be at least --x (5), got 1"
    assert str(other) == "environment: --learning-starts must be 3"
