"""A keyboard as a controller, through a terminal that tells of keys pressed but not released; pure.

So a direction is held until another key ends it, running is switched on and off, and a jump lasts
as long as a full jump does. Time is counted in agent steps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from common.game import Action, actions_of

JUMP_AGENT_STEPS: Final = 8
"""About half a second: as long as holding the button makes a jump higher."""
HOP_AGENT_STEPS: Final = 2
DUCK_AGENT_STEPS: Final = 4
"""A key that is held repeats sooner than this, once it repeats."""
HELP: Final = (
    "any key      begins",
    "left, right  walk until...",
    "space        ...stand still",
    "down, up     duck, climb",
    "z            jump",
    "c            hop",
    "x            run: on, off",
    "q            end",
)

_KEY: Final = re.compile(r"\x1b[\[O][A-D]|\x1b\[[0-9;]*[~A-Za-z]|.", re.DOTALL)
_NAMES: Final = {"A": "up", "B": "down", "C": "right", "D": "left"}
_LETTERS: Final = {"w": "up", "s": "down", "d": "right", "a": "left", " ": "space"}


def keys_in(text: str) -> list[str]:
    """Names of the keys in what a terminal sent; arrows, or the letters wasd."""
    keys = []
    for found in _KEY.findall(text):
        if len(found) == 1:
            keys.append(_LETTERS.get(found.lower(), found.lower()))
        elif found[-1] in _NAMES:
            keys.append(_NAMES[found[-1]])
    return keys


@dataclass(slots=True)
class Controller:
    """What a person holds down, as far as a terminal can tell."""

    direction: str = ""
    is_running: bool = False
    _held: dict[str, int] = field(default_factory=dict)
    """Agent steps for which a button is still held."""

    def press(self, key: str) -> None:
        if key in ("left", "right"):
            self.direction = key
        elif key in ("down", "up"):
            self.direction = ""
            self._held = {**self._held, key: DUCK_AGENT_STEPS}
        elif key == "space":
            self.direction = ""
        elif key == "x":
            self.is_running = not self.is_running
        elif key in ("z", "c"):
            self._held["A"] = JUMP_AGENT_STEPS if key == "z" else HOP_AGENT_STEPS

    def next_buttons(self) -> frozenset[str]:
        """The buttons of the next agent step."""
        held = {button for button, left in self._held.items() if left > 0}
        self._held = {button: left - 1 for button, left in self._held.items() if left > 1}
        ducks = held & {"down", "up"}
        direction = {self.direction} if self.direction and not ducks else ducks
        return frozenset((held & {"A"}) | set(direction) | ({"B"} if self.is_running else set()))


def action_of(buttons: frozenset[str], action_set: str) -> int:
    """The index of the action that holds these buttons, or most of them."""
    actions = actions_of(action_set)

    def likeness(index: int) -> int:
        action: Action = actions[index]
        return len(buttons & set(action)) - len(set(action) - buttons) * len(buttons | set(action))

    return max(range(len(actions)), key=likeness)
