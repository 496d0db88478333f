"""What a person may change in a run that goes on, by name: one home for all who offer it."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Final, Literal

from common.controls import MAX_DISTANCE_WEIGHT, MAX_EXPLORATION_SCALE, MAX_LR_SCALE
from common.errors import ConfigError
from common.run_paths import RunPaths
from common.settings_files import load_settings
from launch.learner_control import ask_learner, request_for

TIMEOUT_S: Final = 5.0
MAX_WHO_CHARACTERS: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSpec:
    """A control as a form shows it."""

    name: str
    title: str
    meaning: str
    kind: Literal["number", "action"] = "number"
    least: float = 0.0
    most: float = 0.0
    metric: str = ""
    """In which the run tells the value in force; empty for an action."""

    def check(self, value: float | None) -> float | None:
        """The value to send; None for an action."""
        if self.kind == "action":
            return None
        if value is None or not math.isfinite(value) or not self.least <= value <= self.most:
            raise ConfigError(
                f"{self.name} must be from {self.least:g} to {self.most:g}, got {value}"
            )
        return value


CONTROLS: Final = (
    ControlSpec(
        name="samples_per_insert",
        title="Samples per insert",
        meaning="how often the learner uses each agent step that is played",
        least=0.01,
        most=1_000.0,
        metric="samples_per_insert_target",
    ),
    ControlSpec(
        name="exploration_scale",
        title="Exploration scale",
        meaning="factor on the epsilons of all actors",
        most=MAX_EXPLORATION_SCALE,
        metric="adaptive_exploration_scale",
    ),
    ControlSpec(
        name="lr_scale",
        title="Learning-rate scale",
        meaning="factor on the learning rate",
        most=MAX_LR_SCALE,
        metric="adaptive_lr_scale",
    ),
    ControlSpec(
        name="distance_weight",
        title="Distance weight",
        meaning="shaped reward per pixel of progress",
        most=MAX_DISTANCE_WEIGHT,
        metric="adaptive_distance_weight_effective",
    ),
    ControlSpec(
        name="checkpoint",
        title="Save a checkpoint now",
        meaning="written at once, beside the regular ones",
        kind="action",
    ),
    ControlSpec(
        name="stop",
        title="Stop the run",
        meaning="saves first; the run can be resumed",
        kind="action",
    ),
)
BY_NAME: Final = {control.name: control for control in CONTROLS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """What the process that was asked said, and when."""

    name: str
    value: float | None
    """As it is in force now."""
    who: str
    time_s: float
    words: str


def send_control(paths: RunPaths, name: str, value: float | None, who: str) -> Confirmation:
    """Change something in a run and wait until its learner has confirmed it.

    The learner keeps who asked for what, and what became of it, in controls.jsonl.
    """
    control = BY_NAME.get(name)
    if control is None:
        raise ConfigError(f"no control {name!r}; there are {', '.join(BY_NAME)}")
    who = " ".join(who.split())[:MAX_WHO_CHARACTERS] or "somebody"
    wanted = control.check(value)
    settings = load_settings(paths.config)
    reply = ask_learner(settings, request_for(settings, name, wanted or 0.0, who), TIMEOUT_S)
    if not reply.accepted:
        raise ConfigError(reply.text)
    return Confirmation(name=name, value=wanted, who=who, time_s=time.time(), words=reply.text)
