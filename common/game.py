"""What every process must know about the game: buttons, action sets, stages, time to build.

Pure data and lookups; nothing here needs an emulator.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Final

from common.errors import ConfigError

BUTTON_BITS: Final = MappingProxyType(
    {
        "A": 0b0000_0001,
        "B": 0b0000_0010,
        "select": 0b0000_0100,
        "start": 0b0000_1000,
        "up": 0b0001_0000,
        "down": 0b0010_0000,
        "left": 0b0100_0000,
        "right": 0b1000_0000,
    }
)
"""One controller's byte, in the order in which the console shifts the buttons out."""

Action = tuple[str, ...]
"""The buttons held down together; empty for no button at all."""

_RIGHT_ONLY: Final[tuple[Action, ...]] = (
    (),
    ("right",),
    ("right", "A"),
    ("right", "B"),
    ("right", "A", "B"),
)
_SIMPLE: Final[tuple[Action, ...]] = (*_RIGHT_ONLY, ("A",), ("left",))
_COMPLEX: Final[tuple[Action, ...]] = (
    *_SIMPLE,
    ("left", "A"),
    ("left", "B"),
    ("left", "A", "B"),
    ("down",),
    ("up",),
)
# Fire and crouch in every form. `up` only climbs vines, where A and B do nothing, and `start`
# would pause the game, so neither is combined further.
_EXTENDED: Final[tuple[Action, ...]] = (
    *_COMPLEX,
    ("B",),
    ("A", "B"),
    ("down", "A"),
    ("down", "B"),
    ("down", "A", "B"),
)

ACTION_SETS: Final = MappingProxyType(
    {
        "right_only": _RIGHT_ONLY,
        "simple": _SIMPLE,
        "complex": _COMPLEX,
        "extended": _EXTENDED,
    }
)
"""Each set begins with the one before it, so an action keeps its index in the larger sets."""

MIN_CONSTRUCTION_S: Final = 180.0
CONSTRUCTION_PER_ENVIRONMENT_S: Final = 60.0

NUM_WORLDS: Final = 8
STAGES_PER_WORLD: Final = 4
STAGES: Final[tuple[str, ...]] = tuple(
    f"{world}-{stage}"
    for world in range(1, NUM_WORLDS + 1)
    for stage in range(1, STAGES_PER_WORLD + 1)
)


def actions_of(set_name: str) -> tuple[Action, ...]:
    try:
        return ACTION_SETS[set_name]
    except KeyError:
        raise ConfigError(
            f"unknown action set {set_name!r}; choose one of {', '.join(ACTION_SETS)}"
        ) from None


def num_actions_of(set_name: str) -> int:
    return len(actions_of(set_name))


def button_byte(action: Action) -> int:
    return sum(BUTTON_BITS[button] for button in set(action))


def action_label(action: Action) -> str:
    """A short name for people, such as `right+A`; `NOOP` when no button is held."""
    return "+".join(action) or "NOOP"


def parse_stage(stage: str) -> tuple[int, int]:
    """World and stage, both from 1, of a name such as `4-2`."""
    if stage not in STAGES:
        raise ConfigError(f"unknown stage {stage!r}; choose one of {STAGES[0]} to {STAGES[-1]}")
    world, _, number = stage.partition("-")
    return int(world), int(number)


def parse_stages(text: str) -> tuple[str, ...]:
    """The stages of `1-1,1-2`, in that order and each once; `all` of them; of nothing, none."""
    if text.strip() == "all":
        return STAGES
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for name in names:
        parse_stage(name)
    return names


def parse_stage_weights(text: str) -> dict[str, float]:
    """The weights of `1-1:1,1-2:3`."""
    weights = {}
    for part in (word.strip() for word in text.split(",")):
        if not part:
            continue
        name, _, number = part.partition(":")
        parse_stage(name.strip())
        try:
            weight = float(number)
        except ValueError:
            raise ConfigError(f"expected STAGE:WEIGHT, got {part!r}") from None
        if not 0 <= weight < math.inf:
            raise ConfigError(f"a weight must be at least 0 and finite, got {part!r}")
        weights[name.strip()] = weight
    return weights


def construction_deadline_s(num_environments: int) -> float:
    """Seconds until the last environment of a host must stand; it waits for all the others."""
    return max(MIN_CONSTRUCTION_S, CONSTRUCTION_PER_ENVIRONMENT_S * num_environments)
