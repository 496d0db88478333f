"""Where episodes begin: which stage, and whether at its start or at a moment on the frontier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from actor.env.episode import EnvSnapshot, RestorableEnv
from actor.frontier import Frontier, Moment, stretch_of
from actor.stage_choice import StageChoice

NOWHERE = -1
SURVIVED_AGENT_STEPS = 16
"""About a second of the game: who is still alive then was not falling into a pit."""


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

    def note_end(self, stage: str, ground_pixels: int, *, cleared: bool) -> None:
        if not cleared:
            self._frontier.note_loss(stage, ground_pixels)

    def note(self, env: RestorableEnv, stage: str, ground_pixels: int, place: Place) -> None:
        """Keep a moment of every stretch of ground, once the episode has survived it."""
        place.agent_steps += 1
        pending = place.pending
        if pending is not None and place.agent_steps >= pending.due_agent_steps:
            self._frontier.keep(stage, pending.stretch, pending.snapshot, pending.prev_action)
            place.pending = None
        if place.pending is None and self._frontier.wants(ground_pixels, place.newest_stretch):
            place.newest_stretch = stretch_of(ground_pixels)
            place.pending = Pending(
                stretch=place.newest_stretch,
                snapshot=env.snapshot(),
                prev_action=place.prev_action,
                due_agent_steps=place.agent_steps + SURVIVED_AGENT_STEPS,
            )


@dataclass(frozen=True, slots=True, eq=False)
class Pending:
    """A moment that may have been the last before a death."""

    stretch: int
    snapshot: EnvSnapshot
    prev_action: int
    due_agent_steps: int


@dataclass(slots=True)
class Place:
    """What an episode knows about itself when it is noted."""

    prev_action: int
    agent_steps: int = 0
    newest_stretch: int = NOWHERE
    pending: Pending | None = None
