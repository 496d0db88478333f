"""Settings in files: TOML or JSON in, JSON out; unknown keys are refused with the nearest name."""

from __future__ import annotations

import difflib
import json
import tomllib
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from common.config import Settings
from common.config_checks import is_plain
from common.errors import ConfigError

Made = TypeVar("Made")
NOTATIONS: Mapping[type, str] = {
    bool: "true or false, without quotes",
    float: "a number without quotes, such as 0.5 or 1e-3",
    int: "a whole number without quotes or point, such as 8",
    str: "it in double quotes",
}


def settings_to_dict(settings: Settings) -> dict[str, dict[str, object]]:
    return asdict(settings)


def settings_from_dict(values: Mapping[str, object], base: Settings, source: str) -> Settings:
    """`base` with the given sections changed; `source` names the file in errors."""
    sections = {item.name: getattr(base, item.name) for item in fields(base)}
    for section, changes in values.items():
        require_known(section, sections, source)
        checked = _checked(type(sections[section]), changes, source, section)
        sections[section] = _named(source, replace, sections[section], **checked)
    return _named(source, Settings, **sections)


def require_known(section: str, known: Collection[str], source: str) -> None:
    if section not in known:
        raise ConfigError(f"{source}: unknown section {section!r}{_hint(section, known)}")


def checked_section(kind: type[Made], values: object, source: str, section: str) -> Made:
    """A section of a file that is no part of the settings of a run, refused in the same words."""
    return _named(source, kind, **_checked(kind, values, source, section))


def _named(source: str, make: Callable[..., Made], *parts: Any, **values: Any) -> Made:
    """What the settings refuse is a flag; here it stands in a file."""
    try:
        return make(*parts, **values)
    except ConfigError as error:
        raise ConfigError(f"{source}: {error}") from error


def load_settings(path: Path, base: Settings | None = None) -> Settings:
    """Read a TOML preset or the config.json of a run."""
    return settings_from_dict(read_sections(path), base or Settings(), str(path))


def read_sections(path: Path) -> dict[str, object]:
    """What such a file says, unchecked: tables of settings by section."""
    if path.suffix not in (".toml", ".json"):
        raise ConfigError(f"{path}: settings are read from .toml or .json files")
    try:
        text = path.read_text(encoding="utf-8-sig")
        values = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise ConfigError(f"no configuration file at {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid {path.suffix.lstrip('.')}: {error}") from error
    if isinstance(values, dict) and path.suffix == ".json":
        values = values.get("settings", values)
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold tables of settings, got {type(values).__name__}")
    return values


def setting_differences(old: Settings, new: Settings) -> dict[str, tuple[object, object]]:
    """Settings that differ, by name, with the old and the new value."""
    before, after = settings_to_dict(old), settings_to_dict(new)
    return {
        name: (before[section][name], value)
        for section, values in after.items()
        for name, value in values.items()
        if before[section][name] != value
    }


def _hint(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}"


def _checked(kind: type, changes: object, source: str, section: str) -> dict[str, Any]:
    if not isinstance(changes, Mapping):
        raise ConfigError(
            f"{source}: section {section!r} must be a table, got {changes!r}; "
            f"write [{section}] and below it NAME = VALUE (in JSON an object)"
        )
    where, hints = f"{source}: {section}", get_type_hints(kind)
    for name, value in changes.items():
        if name not in hints:
            raise ConfigError(f"{where}: unknown setting {name!r}{_hint(name, hints)}")
        if not _fits(value, hints[name]):
            expected = getattr(hints[name], "__name__", str(hints[name]))
            raise ConfigError(
                f"{where}.{name}: expected {expected}, got {value!r}; write {_remedy(hints[name])}"
            )
        if isinstance(value, str) and not is_plain(value):
            raise ConfigError(f"{where}.{name}: expected text that can be written, got {value!a}")
    try:
        return {
            name: float(value) if hints[name] is float and isinstance(value, int) else value
            for name, value in changes.items()
        }
    except OverflowError as error:
        raise ConfigError(f"{where}: {error}") from error


def _remedy(hint: Any) -> str:
    """What to write instead, in TOML as in JSON."""
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(json.dumps(choice) for choice in get_args(hint))
    return NOTATIONS.get(hint, "a value of that kind")


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if get_origin(hint) is types.UnionType:
        return any(_fits(value, option) for option in get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is hint
