"""Settings from environment variables: their names, and their values read by type.

Only `launch/local.py` and `launch/cluster.py` ask. What they start has everything from config.json,
and programs that are started by hand must agree with each other, so they read one file and not the
shells around them.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from common.config import Settings
from common.config_checks import flag_of
from common.devices import ALLOW_CPU_VARIABLE
from common.errors import ConfigError

PREFIX: Final = "MARIO_"
KEPT_NAMES: Final = types.MappingProxyType(
    {
        "run": "RUN_NAME",
        "actions": "ACTION_TYPE",
        "reward_distance_weight": "REWARD_DISTANCE_WEIGHT",
        "reward_scale_start": "REWARD_SCALE_START",
        "reward_scale_final": "REWARD_SCALE_FINAL",
        "reward_scale_anneal_steps": "REWARD_SCALE_ANNEAL_STEPS",
        "scripted_sequence": "SCRIPTED_SEQUENCE",
        "scripted_forward_frames": "SCRIPTED_FORWARD_FRAMES",
        "forward_action_id": "FORWARD_ACTION_ID",
        "probe_forward_actions": "PROBE_FORWARD",
        "enable_ram_x_parse": "ENABLE_RAM_X_PARSE",
        "ram_x_high_addr": "RAM_X_HIGH",
        "ram_x_low_addr": "RAM_X_LOW",
        "auto_mem": "AUTO_MEM",
        "max_updates": "TOTAL_UPDATES",
        "float16_scalars": f"{PREFIX}PER_FP16_SCALARS",
    }
)
"""Settings whose variables people know by other names; all others are MARIO_ and the field."""
SOURCE: Final = "environment"
"""How settings name it in refusals."""
BOOTSTRAP_VARIABLE: Final = "BOOTSTRAP"
"""Lays the preset of that name over whatever preset was chosen."""
OTHER_VARIABLES: Final = frozenset(
    {
        ALLOW_CPU_VARIABLE,
        f"{PREFIX}FC_STRICT_STAGE",
        f"{PREFIX}SHAPING_DEBUG",
        f"{PREFIX}SUPPRESS_FC_STAGE_WARN",
    }
)
"""Read elsewhere, and no settings: they do not belong to a run."""

_SWITCHES: Final = types.MappingProxyType(
    {"1": True, "true": True, "yes": True, "on": True}
    | {"0": False, "false": False, "no": False, "off": False}
)
_ACTION_TYPES: Final = types.MappingProxyType({"right": "right_only"})
_KINDS: Final = types.MappingProxyType({int: "a whole number", float: "a number"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A setting that the environment gives."""

    variable: str
    section: str
    field: str
    value: object


def variable_of(field: str) -> str:
    return KEPT_NAMES.get(field, f"{PREFIX}{field.upper()}")


def given_settings(environment: Mapping[str, str]) -> list[Given]:
    """Every setting that has a variable, in the order of the settings; an empty one is none."""
    return [
        Given(variable=variable_of(field), section=section, field=field, value=value)
        for section, kind in _sections()
        for field, value in given_values(kind, environment).items()
    ]


def given_values(kind: type, environment: Mapping[str, str]) -> dict[str, Any]:
    """The fields of a dataclass that the environment gives, but those that hold settings."""
    hints = get_type_hints(kind)
    return {
        field: read_value(variable_of(field), environment[variable_of(field)], hint)
        for field, hint in hints.items()
        if hint is not Settings and environment.get(variable_of(field), "").strip()
    }


def has_bootstrap(environment: Mapping[str, str]) -> bool:
    text = environment.get(BOOTSTRAP_VARIABLE, "")
    return bool(text.strip()) and read_value(BOOTSTRAP_VARIABLE, text, bool) is True


def read_value(variable: str, text: str, hint: Any) -> object:
    """What a TOML file would hold, from a text without quotes."""
    if variable == KEPT_NAMES["actions"]:
        name = text.strip().lower().replace("-", "_")
        return _ACTION_TYPES.get(name, name)
    if hint is str:
        return text
    word = text.strip()
    if get_origin(hint) is Literal:
        return _among(variable, word, {str(choice): choice for choice in get_args(hint)})
    if hint is bool:
        return _among(variable, word.lower(), _SWITCHES)
    read: Callable[[str], object] = float if hint is float else _whole_number
    try:
        return read(word)
    except ValueError:
        raise ConfigError(f"{variable}: expected {_KINDS[hint]}, got {text!r}") from None


def unknown_variables(environment: Mapping[str, str], known: Collection[str]) -> Iterator[str]:
    """Variables that look like ours and that nobody reads, each with the nearest that is read."""
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name in known or name in OTHER_VARIABLES:
            continue
        kept = KEPT_NAMES.get(name.removeprefix(PREFIX).lower())
        near = [kept] if kept else difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {near[0]}?" if near else "docs/configuration.md lists them"
        yield f"{name} is not read by anything; {hint}"


def blamed(error: ConfigError, given: Collection[Given]) -> ConfigError:
    """The same refusal, with the variable whose flag it names first."""
    flags = {flag_of(one.field): one.variable for one in given}
    said = str(error).removeprefix(f"{SOURCE}: ")
    words = [word.rstrip(":") for word in said.split()]
    names = [flags[word] for word in words if word in flags]
    return ConfigError(f"{names[0] if names else SOURCE}: {said}")


def _sections() -> Iterator[tuple[str, type]]:
    default = Settings()
    for item in fields(default):
        yield item.name, type(getattr(default, item.name))


def _whole_number(word: str) -> int:
    """As in TOML: 80_000 and 0x6D too."""
    return int(word, 0)


def _among(variable: str, word: str, choices: Mapping[str, object]) -> object:
    if word not in choices:
        raise ConfigError(f"{variable}: expected one of {', '.join(choices)}, got {word!r}")
    return choices[word]
