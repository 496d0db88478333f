"""What the settings check when they are made; a refusal names the flag."""

from __future__ import annotations

import math

from common.errors import ConfigError

MAX_WAIT_S = 7 * 24 * 3600
"""A week: longer than anybody waits, and within what the system's own timeouts can hold."""


def flag_of(name: str) -> str:
    """The flag of a setting."""
    return "--" + name.replace("_", "-")


def require(condition: bool, name: str, expected: str, got: object) -> None:
    if not condition:
        raise ConfigError(f"{flag_of(name)} must be {expected}, got {got}")


def require_positive(section: object, *names: str) -> None:
    for name in names:
        value = getattr(section, name)
        require(0 < value < math.inf, name, "greater than 0 and finite", value)


def require_between(section: object, low: float, high: float, *names: str) -> None:
    for name in names:
        value = getattr(section, name)
        require(low <= value <= high, name, f"between {low} and {high}", value)


def require_wait(section: object, *names: str) -> None:
    """Seconds that reach a timeout; 0 where it has a meaning."""
    require_between(section, 0, MAX_WAIT_S, *names)


def require_at_least_zero(section: object, *names: str) -> None:
    for name in names:
        value = getattr(section, name)
        require(0 <= value < math.inf, name, "at least 0 and finite", value)


def is_plain(text: str) -> bool:
    """Whether it can be a path, an address or a line of a log: no NUL, no half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
