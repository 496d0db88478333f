"""What is done to the play of an environment besides choosing actions: shaping and scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from actor.env.interface import Info
from actor.gains import GainWatch
from actor.level_notes import LanePath
from actor.missed_ground import MissedGround
from actor.script import Guide
from actor.shaping import Shaping
from common.messages import Scalar

STAGNATION_AGENT_STEPS = 150
"""Ten seconds of the game with the usual frame skip."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaneTools:
    """Of one environment; by default they change nothing."""

    shaping: Shaping = field(default_factory=Shaping)
    """One for all environments of an actor."""
    gains: GainWatch = field(default_factory=GainWatch)
    guide: Guide = field(default_factory=Guide)
    missed: MissedGround | None = None
    path: LanePath | None = None
    """Notes for the map of the stage."""
    stores_scripted: bool = True
    stagnation_agent_steps: int = STAGNATION_AGENT_STEPS
    """Without new ground, after which an environment counts as stagnating."""

    def begin(self, info: Info, *, from_start: bool) -> None:
        """An episode has begun, at the start of its stage or at a moment of another one."""
        self.gains.begin(info)
        self.guide.begin_episode(from_start=from_start)
        if self.missed is not None:
            self.missed.begin(info)
        if self.path is not None:
            self.path.begin()

    def note(self, reward: float, info: Info, *, is_over: bool) -> float:
        """After every agent step: the reward to learn from."""
        gain = self.gains.note(info)
        self.guide.note(self.gains.idle_agent_steps, is_over=is_over)
        if self.missed is not None:
            self.missed.note(gain, info)
        return self.shaping.add(reward, gain)


def tool_figures(shaping: Shaping, tools: Sequence[LaneTools]) -> dict[str, Scalar]:
    """What the heartbeat of an actor tells of them; the learner adds up those of all actors."""
    idle = [(one.gains.idle_agent_steps, one.stagnation_agent_steps) for one in tools]
    return {
        **shaping.figures(),
        "shaping_parse_fail": sum(one.gains.failures for one in tools),
        "stagnation_envs": sum(steps >= limit for steps, limit in idle),
        "stagnation_steps_sum": sum(steps for steps, _ in idle),
        "envs": len(tools),
        "scripted_steps_total": sum(one.guide.scripted_agent_steps for one in tools),
        "bootstraps_total": sum(one.guide.bootstraps for one in tools),
    }
