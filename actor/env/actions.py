"""From an action's index to the byte that the first controller holds, and to a name for people."""

from __future__ import annotations

from common.game import action_label, actions_of, button_byte


def action_bytes(set_name: str) -> tuple[int, ...]:
    return tuple(button_byte(action) for action in actions_of(set_name))


def action_labels(set_name: str) -> tuple[str, ...]:
    return tuple(action_label(action) for action in actions_of(set_name))
