"""Scripts of buttons such as `RIGHT+B:180,A:8`: read and checked, never played here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from common.errors import ConfigError
from common.game import BUTTON_BITS, Action, action_label, actions_of

MAX_SCRIPT_FRAMES = 20_000
"""As long as the longest episode."""
NO_BUTTON = "NOOP"
_BUTTONS = {name.upper(): name for name in BUTTON_BITS}


@dataclass(frozen=True, slots=True)
class Hold:
    """One action, by its index in the action set, held for some emulator frames."""

    action: int
    frames: int


def parse_script(text: str, set_name: str) -> tuple[Hold, ...]:
    """The holds of a script; a mistake is refused with its place, counted from 1."""
    holds = []
    place = 1
    for part in text.split(","):
        if text.strip():
            holds.append(_parse_hold(part, place, set_name))
        place += len(part) + 1
    total = sum(hold.frames for hold in holds)
    if total > MAX_SCRIPT_FRAMES:
        raise ConfigError(f"a script may last {MAX_SCRIPT_FRAMES} frames, this one has {total}")
    return tuple(holds)


def _parse_hold(part: str, place: int, set_name: str) -> Hold:
    buttons, colon, frames = part.partition(":")
    if not colon:
        _refuse(place, part, "expected BUTTONS:FRAMES, such as RIGHT+B:180")
    action, count = _find_action(buttons, place, part, set_name), frames.strip()
    if not (count.isascii() and count.isdecimal()) or int(count) == 0:
        _refuse(place + len(buttons) + 1, part, f"expected frames above 0, got {count!r}")
    return Hold(action, int(count))


def _find_action(buttons: str, place: int, part: str, set_name: str) -> int:
    wanted = set()
    for word in buttons.split("+"):
        name = word.strip().upper()
        if name not in _BUTTONS and name != NO_BUTTON:
            known = ", ".join([*_BUTTONS, NO_BUTTON])
            _refuse(place, part, f"unknown button {word.strip()!r}; known are {known}")
        wanted |= {_BUTTONS[name]} if name in _BUTTONS else set()
        place += len(word) + 1
    actions = actions_of(set_name)
    held = [set(action) for action in actions]
    if wanted not in held:
        choices = ", ".join(label_of(action) for action in actions)
        _refuse(place - len(buttons) - 1, part, f"not among the actions of {set_name}: {choices}")
    return held.index(wanted)


def label_of(action: Action) -> str:
    """How a script writes an action."""
    return action_label(action).upper()


def _refuse(place: int, part: str, why: str) -> NoReturn:
    raise ConfigError(f"at character {place}, {part.strip()!r}: {why}")
