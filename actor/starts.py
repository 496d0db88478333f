"""Where episodes begin: which stage, and whether at its start or at a moment on the frontier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actor.env.episode import RestorableEnv
from actor.frontier import Frontier, Moment
from actor.stage_choice import StageChoice

NOWHERE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    stage: str
    moment: Moment | None
    """None for the true start of the stage."""


class Starts:
    """One for all environments of an actor."""

    def __init__(self, stages: StageChoice, frontier: Frontier) -> None:
        self._stages = stages
        self._frontier = frontier

    def set_shares(self, shares: Mapping[str, object]) -> None:
        self._stages.set_shares(shares)

    def draw(self) -> Start:
        stage = self._stages.draw()
        return Start(stage, self._frontier.draw(stage))

    def note(self, env: RestorableEnv, stage: str, ground_pixels: int, place: Place) -> None:
        """Keep the moment if the episode has come to another stretch of ground."""
        if self._frontier.wants(ground_pixels, place.last_kept):
            place.last_kept = self._frontier.keep(
                stage, ground_pixels, env.snapshot(), place.prev_action
            )


@dataclass(slots=True)
class Place:
    """What an episode knows about itself when it is noted."""

    prev_action: int
    last_kept: int = NOWHERE
    """The stretch of ground at which it was kept last."""
