"""Checks of decoded msgpack values against the field types of `common/messages.py`.

Each checker returns the value to store or raises `BadMessage`; none allocates in proportion to a
number that a peer has sent.
"""

from __future__ import annotations

import math
import re
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from common.errors import BadMessage, ConfigError
from common.messages import Range, Text

Checker = Callable[[object], object]
MAX_KEY_LENGTH = 64
MAX_RECORD_TEXT = 1000


@cache
def field_checkers(kind: type) -> dict[str, Checker]:
    """One checker per field of a message or of a value inside one."""
    hints = get_type_hints(kind, include_extras=True)
    return {item.name: _checker(item.name, hints[item.name]) for item in fields(kind)}


def check_fields(kind: type, values: object) -> dict[str, Any]:
    """The checked keyword arguments of `kind`: no field missing, none unknown."""
    if not isinstance(values, dict):
        raise BadMessage("field_type", f"{kind.__name__} is not a map")
    checkers = field_checkers(kind)
    if values.keys() != checkers.keys():
        odd = sorted(str(key)[:40] for key in values.keys() ^ checkers.keys())[:5]
        raise BadMessage("field_names", f"{kind.__name__}: missing or unknown {odd}")
    return {name: check(values[name]) for name, check in checkers.items()}


def _checker(name: str, hint: Any) -> Checker:
    if get_origin(hint) is Annotated:
        base, rule = get_args(hint)[:2]
        return _ruled_checker(name, base, rule)
    if get_origin(hint) is Literal:
        return _choice_checker(name, get_args(hint))
    if hint is bool:
        return lambda value: _typed(name, value, bool)
    if is_dataclass(hint) and isinstance(hint, type):
        return lambda value: _nested(hint, value)
    raise TypeError(f"message field {name} has the unsupported type {hint}")


def _ruled_checker(name: str, base: Any, rule: Range | Text) -> Checker:
    if isinstance(rule, Text):
        return _text_checker(name, rule)
    if get_origin(base) is dict:
        return lambda value: _record(name, value, int(rule.high))
    return _number_checker(name, base, rule)


def _typed(name: str, value: object, kind: type) -> object:
    # bool is an int in Python; on the wire they are different types.
    if type(value) is not kind:
        raise BadMessage("field_type", f"{name}: expected {kind.__name__}")
    return value


def _number_checker(name: str, base: type, rule: Range) -> Checker:
    def check(value: object) -> object:
        if base is float and type(value) is int:
            value = float(value)
        number: Any = _typed(name, value, base)
        if not rule.low <= number <= rule.high:
            raise BadMessage("field_range", f"{name}: {number} not in {rule.low}..{rule.high}")
        return number

    return check


def _text_checker(name: str, rule: Text) -> Checker:
    pattern = re.compile(rule.pattern)

    def check(value: object) -> object:
        text = _typed(name, value, str)
        if not isinstance(text, str) or len(text) > rule.max_length:
            raise BadMessage("field_range", f"{name}: longer than {rule.max_length}")
        if pattern.fullmatch(text) is None:
            raise BadMessage("field_text", f"{name}: unexpected characters")
        return text

    return check


def _choice_checker(name: str, choices: tuple[object, ...]) -> Checker:
    def check(value: object) -> object:
        if not isinstance(value, str) or value not in choices:
            raise BadMessage("field_range", f"{name}: expected one of {choices}")
        return value

    return check


@cache
def _plain_types(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _nested(kind: type, value: object) -> object:
    hints = _plain_types(kind)
    if not isinstance(value, dict) or value.keys() != hints.keys():
        raise BadMessage("field_names", kind.__name__)
    for name in hints:
        _typed(name, value[name], hints[name])
    try:
        return kind(**value)
    except ConfigError as error:
        raise BadMessage("field_range", str(error)) from error


def _record(name: str, value: object, limit: int) -> object:
    if not isinstance(value, dict) or len(value) > limit:
        raise BadMessage("field_type", f"{name}: expected a map of at most {limit}")
    for key, item in value.items():
        if not isinstance(key, str) or len(key) > MAX_KEY_LENGTH:
            raise BadMessage("field_type", f"{name}: bad key")
        _check_scalar(name, item)
    return value


def _check_scalar(name: str, item: object) -> None:
    if not isinstance(item, int | float | str | bool | types.NoneType):
        raise BadMessage("field_type", f"{name}: values must be scalars")
    if isinstance(item, float) and not math.isfinite(item):
        raise BadMessage("field_range", f"{name}: not finite")
    if isinstance(item, str) and len(item) > MAX_RECORD_TEXT:
        raise BadMessage("field_range", f"{name}: text too long")
