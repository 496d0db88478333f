"""Adapts three values to how play goes: a rule over windows of agent steps; no clock, no files.

At the end of a window, from the episodes that ended in it: the share of agent steps that moved
forward decides how much help play gets (distance weight, exploration), the returns decide about
the learning rate. The reasons are in docs/decisions/0023-adaptive-schedules.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from common.config import AdaptiveSettings
from common.messages import Episode
from learner.controls import RunControls

EPISODES_BEFORE_JUDGEMENT: Final = 5
"""A window with fewer goes on: a single episode says nothing."""
WALKING_PIXELS_PER_FRAME: Final = 1.5
"""Of Mario without B: 24 of 16ths of a pixel."""
_FALL_IN_STANDARD_ERRORS: Final = 2.0
_LEVEL_KEPT: Final = 0.5
_DIGITS: Final = 6
"""So that ten steps of 0.1 are 1."""
Direction = Literal[-1, 0, 1]


@dataclass(slots=True)
class Window:
    """The episodes that ended since the last decision, as sums."""

    episodes: int = 0
    agent_steps: int = 0
    forward_agent_steps: int = 0
    ground_pixels: int = 0
    """New ground, which is counted apart from the steps: it tells when those are not."""
    returns: float = 0.0
    squared_returns: float = 0.0

    def note(self, episode: Episode) -> None:
        self.episodes += 1
        self.agent_steps += episode.agent_steps
        self.forward_agent_steps += episode.positive_dx_agent_steps
        self.ground_pixels += episode.ground
        self.returns += episode.episode_return
        self.squared_returns += episode.episode_return**2

    @property
    def mean_return(self) -> float:
        return self.returns / self.episodes

    @property
    def standard_error(self) -> float:
        """Of the mean return."""
        variance = self.squared_returns / self.episodes - self.mean_return**2
        return math.sqrt(max(variance, 0.0) / max(self.episodes - 1, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was seen in a window, and what followed from it."""

    forward_ratio: float
    is_estimated: bool
    """The ratio was zero although there was distance: it was estimated from that."""
    mean_return: float
    has_changed: bool


def forward_ratio(window: Window, pixels_per_agent_step: float) -> tuple[float, bool]:
    """Share of agent steps that moved forward, and whether distance had to tell it.

    The estimate is the share that would have covered the distance at a walk.
    """
    ratio = window.forward_agent_steps / window.agent_steps if window.agent_steps else 0.0
    if ratio > 0 or window.ground_pixels <= 0:
        return ratio, False
    walked = window.ground_pixels / pixels_per_agent_step
    return min(walked / max(window.agent_steps, 1), 1.0), True


def judge_returns(window: Window, level: float | None) -> Direction:
    """-1: they fell below their earlier level by more than chance; 1: they did not."""
    if level is None:
        return 0
    chance = _FALL_IN_STANDARD_ERRORS * window.standard_error
    return -1 if window.mean_return < level - chance else 1


class AdaptiveSchedule:
    """Fed with episodes; `follow` decides at the end of every window."""

    def __init__(self, settings: AdaptiveSettings, *, frame_skip: int) -> None:
        self._settings = settings
        self._pixels_per_agent_step = WALKING_PIXELS_PER_FRAME * frame_skip
        self._window = Window()
        self._since: int | None = None
        """Agent steps of the run at the last decision."""
        self._level: float | None = None
        """Of the returns; None where there is nothing to compare with."""
        self.is_estimated = False
        """Whether the last ratio was estimated from distance."""

    def note(self, episode: Episode) -> None:
        self._window.note(episode)

    def follow(self, agent_steps: int, controls: RunControls) -> Decision | None:
        """Change the controls if a window has ended; what was decided."""
        if self._since is None or agent_steps < self._since:
            self._since = agent_steps
        is_over = agent_steps - self._since >= self._settings.adaptive_window_agent_steps
        if not is_over or self._window.episodes < EPISODES_BEFORE_JUDGEMENT:
            return None
        window, self._window, self._since = self._window, Window(), agent_steps
        return self._decide(window, controls)

    def confine(self, controls: RunControls) -> None:
        """Bring what is in force within the bounds, which may be new in this start."""
        self._move(controls, help_direction=0, lr_direction=0)

    def to_state(self) -> dict[str, int | float | bool | None]:
        """Without the open window: its episodes come again by themselves."""
        return {"since": self._since, "level": self._level, "is_estimated": self.is_estimated}

    def restore(self, state: Mapping[str, object]) -> None:
        since, level = state.get("since"), state.get("level")
        self._since = None if since is None else int(str(since))
        self._level = None if level is None else float(str(level))
        if self._level is not None and not math.isfinite(self._level):
            raise ValueError(f"the level of the returns must be finite, got {level}")
        self.is_estimated = state.get("is_estimated") is True

    def _decide(self, window: Window, controls: RunControls) -> Decision:
        ratio, self.is_estimated = forward_ratio(window, self._pixels_per_agent_step)
        before = controls.play
        has_changed = self._move(
            controls,
            help_direction=self._judge_ratio(ratio),
            lr_direction=judge_returns(window, self._level),
        )
        # Exploration lowers returns: what was earned with more or less of it says nothing about
        # what comes. Shaped rewards are no part of a return.
        explores_otherwise = controls.play.exploration_scale != before.exploration_scale
        self._level = None if explores_otherwise else self._next_level(window.mean_return)
        return Decision(
            forward_ratio=ratio,
            is_estimated=self.is_estimated,
            mean_return=window.mean_return,
            has_changed=has_changed,
        )

    def _judge_ratio(self, ratio: float) -> Direction:
        if ratio < self._settings.adaptive_ratio_low:
            return 1
        return -1 if ratio > self._settings.adaptive_ratio_high else 0

    def _next_level(self, mean_return: float) -> float:
        before = mean_return if self._level is None else self._level
        return _LEVEL_KEPT * before + (1.0 - _LEVEL_KEPT) * mean_return

    def _move(
        self, controls: RunControls, *, help_direction: Direction, lr_direction: Direction
    ) -> bool:
        play = controls.play
        return controls.change(
            distance_weight=self._moved("distance_weight", play.distance_weight, help_direction),
            exploration_scale=self._moved(
                "exploration_scale", play.exploration_scale, help_direction
            ),
            lr_scale=self._moved("lr_scale", controls.lr_scale, lr_direction),
        )

    def _moved(self, name: str, value: float, direction: Direction) -> float:
        least, greatest, step = (
            float(getattr(self._settings, f"adaptive_{name}_{end}"))
            for end in ("min", "max", "step")
        )
        return round(min(max(value + direction * step, least), greatest), _DIGITS)
