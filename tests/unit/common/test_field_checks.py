"""Every field of every message refuses values outside its type and limits."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import pytest

from common.errors import BadMessage
from common.field_checks import MAX_KEY_LENGTH, MAX_RECORD_TEXT, check_fields, field_checkers
from common.messages import (
    COUNTER_MAX,
    MESSAGES,
    Heartbeat,
    Hello,
    Message,
    Range,
    SampleRequest,
    Stats,
    Text,
)
from tests.message_factory import EXAMPLES

NEVER_A_SCALAR: tuple[object, ...] = (None, [], {}, b"1", [1], {"a": 1})


def bad_values(hint: Any) -> list[object]:
    """Values that a field of this type must refuse."""
    if get_origin(hint) is Literal:
        return [*NEVER_A_SCALAR, 1, True, "", "ACTOR", "other"]
    if hint is bool:
        return [*NEVER_A_SCALAR, 0, 1, 2, "true", 1.0]
    if get_origin(hint) is not Annotated:
        return [None, [], {}, "spec", 1]
    base, rule = get_args(hint)
    if isinstance(rule, Text):
        return [*NEVER_A_SCALAR, 1, True, "x" * (rule.max_length + 1), "a\0b", "a\nb", "\x7f"]
    if get_origin(base) is dict:
        return [None, [], "text", 1]
    return bad_numbers(base, rule)


def bad_numbers(base: type, rule: Range) -> list[object]:
    if base is int:
        outside = [int(rule.low) - 1, int(rule.high) + 1, -(2**63), 2**64 - 1]
        return [*NEVER_A_SCALAR, True, "1", 1.0, math.nan, *outside]
    # A large number less one is the same number.
    beyond = [rule.low - 1 - abs(rule.low), rule.high * 2, -math.inf, math.inf, math.nan]
    return [*NEVER_A_SCALAR, False, "1", *beyond]


CASES = [
    pytest.param(tag, item.name, value, id=f"{tag}.{item.name}={str(value)[:20]!r}")
    for tag, kind in MESSAGES.items()
    for item in fields(kind)
    for value in bad_values(get_type_hints(kind, include_extras=True)[item.name])
]


@pytest.mark.parametrize(("tag", "name", "value"), CASES)
def test_a_value_outside_its_type_or_limits_is_refused(tag: str, name: str, value: object) -> None:
    values = asdict(EXAMPLES[tag])
    values[name] = value

    with pytest.raises(BadMessage):
        check_fields(MESSAGES[tag], values)


@pytest.mark.parametrize("tag", sorted(MESSAGES))
def test_each_missing_field_is_refused(tag: str) -> None:
    values = asdict(EXAMPLES[tag])

    for name in values:
        rest = {key: value for key, value in values.items() if key != name}
        with pytest.raises(BadMessage, match="field_names"):
            check_fields(MESSAGES[tag], rest)


@pytest.mark.parametrize("tag", sorted(MESSAGES))
def test_good_fields_come_back_as_they_were(tag: str) -> None:
    message = EXAMPLES[tag]

    assert MESSAGES[tag](**check_fields(MESSAGES[tag], asdict(message))) == message


def test_limits_themselves_are_accepted() -> None:
    values = asdict(EXAMPLES["sample_request"])

    for name, edges in {"request_id": (0, COUNTER_MAX), "slot": (0, 64), "beta": (0, 1)}.items():
        for edge in edges:
            checked = check_fields(SampleRequest, {**values, name: edge})
            assert checked[name] == edge


def test_an_integer_is_taken_for_a_float() -> None:
    checked = check_fields(SampleRequest, {**asdict(EXAMPLES["sample_request"]), "beta": 1})

    assert type(checked["beta"]) is float


@pytest.mark.parametrize(
    "peer",
    [
        "",
        "actor",
        "actor-",
        "-1",
        "actor-1234567",
        "../x",
        "Actor-1",
        "actor-1\n",
        "<b>-1",
        "a/b-1",
    ],
)
def test_peer_ids_that_could_be_paths_or_markup_are_refused(peer: str) -> None:
    with pytest.raises(BadMessage):
        check_fields(Hello, {**asdict(EXAMPLES["hello"]), "peer": peer})


@pytest.mark.parametrize("run_id", ["", "../../etc", "a/b", ".hidden", "-dash", "a b", "a\n", "ü"])
def test_run_names_that_could_be_paths_are_refused(run_id: str) -> None:
    with pytest.raises(BadMessage):
        check_fields(Hello, {**asdict(EXAMPLES["hello"]), "run_id": run_id})


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a b", "a\0", "x" * 121])
def test_shared_file_names_that_could_be_paths_are_refused(name: str) -> None:
    values = {**asdict(EXAMPLES["sample_request"]), "shared_file": name}

    with pytest.raises(BadMessage):
        check_fields(SampleRequest, values)


@pytest.mark.parametrize(
    "spec",
    [
        {"height": 0},
        {"height": 257},
        {"width": -1},
        {"stack": 17},
        {"num_actions": 65},
        {"n_step": 65},
        {"n_step": True},
        {"height": 84.0},
        {"height": None},
        {"depth": 1},
    ],
)
def test_data_specs_outside_the_limits_are_refused(spec: dict[str, object]) -> None:
    values = asdict(EXAMPLES["hello"])
    values["spec"] = {**values["spec"], **spec}

    with pytest.raises(BadMessage):
        check_fields(Hello, values)


@pytest.mark.parametrize(
    "record",
    [
        {"x": math.nan},
        {"x": math.inf},
        {"x": [1]},
        {"x": {}},
        {"x": b"1"},
        {"x": "y" * (MAX_RECORD_TEXT + 1)},
        {"k" * (MAX_KEY_LENGTH + 1): 1},
        {1: 1},
        {b"": 1},
        {f"name{index}": index for index in range(201)},
    ],
    ids=lambda record: str(record)[:30],
)
def test_records_hold_a_bounded_number_of_scalars(record: dict[Any, object]) -> None:
    values = {**asdict(EXAMPLES["heartbeat"]), "record": record}

    with pytest.raises(BadMessage):
        check_fields(Heartbeat, values)


def test_a_record_of_the_greatest_size_is_accepted() -> None:
    record = {f"name{index}": None for index in range(200)}

    assert check_fields(Stats, {"values": record}) == {"values": record}


def test_errors_name_the_field_and_cut_what_the_peer_sent() -> None:
    with pytest.raises(BadMessage) as caught:
        check_fields(Stats, {"v" * 10_000: {}})

    assert len(str(caught.value)) < 300


def test_a_field_type_that_nobody_can_check_is_a_mistake_in_the_code() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Unchecked(Message):
        anything: list[int]

    Unchecked.__annotations__["anything"] = list[int]
    with pytest.raises(TypeError, match="anything"):
        field_checkers(Unchecked)
