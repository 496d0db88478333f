"""Actions that no policy chose: scripts at the start of episodes, and leading on who is stuck.

Decides what is played, agent step by agent step; whoever plays asks `Guide.action` first.
Nothing here looks at a clock but the log, so that equal seeds give equal play.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import repeat

from common.button_script import Hold
from common.logs import RareLog

log = logging.getLogger(__name__)

TELL_EVERY_S = 10.0


def agent_steps_of(frames: int, frame_skip: int) -> int:
    """Agent steps that last at least so many emulator frames."""
    return -(-frames // frame_skip)


def expand(holds: Iterable[Hold], frame_skip: int) -> tuple[int, ...]:
    """The actions of a script, one per agent step."""
    return tuple(
        hold.action for hold in holds for _ in range(agent_steps_of(hold.frames, frame_skip))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidePlan:
    """When an environment is led, and where; by default never."""

    start: tuple[int, ...] = ()
    """Actions at the start of an episode, one per agent step."""
    start_episodes: int = 0
    """Episodes that begin so; 0: all that begin at the start of a stage."""
    forward_action: int = 0
    stuck_agent_steps: int = 0
    """Without new ground, after which the forward action is played for a while; 0: never."""
    bootstrap_agent_steps: int = 0
    """How long it is played then."""


class Guide:
    """Of one environment: a script ends at its end or with its episode, and never begins late."""

    def __init__(self, plan: GuidePlan | None = None, told: BootstrapLog | None = None) -> None:
        self._plan = plan or GuidePlan()
        self._told = told or BootstrapLog(0)
        self._ahead: Iterator[int] = iter(())
        self._scripts_begun = 0
        self._is_bootstrap = False
        self._since_bootstrap_agent_steps = 0
        self.action: int | None = None
        """What is played next, whatever the policy thinks; None leaves it the choice."""
        self.scripted_agent_steps = 0
        self.bootstraps = 0

    def begin_episode(self, *, from_start: bool) -> None:
        plan, limit = self._plan, self._plan.start_episodes
        begins = from_start and bool(plan.start) and (limit == 0 or self._scripts_begun < limit)
        self._scripts_begun += begins
        self._ahead = iter(plan.start if begins else ())
        self.action = next(self._ahead, None)

    def note(self, idle_agent_steps: int, *, is_over: bool) -> None:
        """After every agent step: for how long there was no new ground, whether that was all."""
        self._since_bootstrap_agent_steps += 1
        if self.action is not None:
            self.scripted_agent_steps += 1
            self.action = next(self._ahead, None)
        if self._is_bootstrap:
            if is_over or self.action is None:
                self._end_bootstrap(idle_agent_steps, "episode over" if is_over else "done")
        elif self.action is None and not is_over and self._is_stuck(idle_agent_steps):
            self._begin_bootstrap(idle_agent_steps)

    def _is_stuck(self, idle_agent_steps: int) -> bool:
        # A bootstrap that led nowhere gives the policy its time again.
        idle = min(idle_agent_steps, self._since_bootstrap_agent_steps)
        return 0 < self._plan.stuck_agent_steps <= idle

    def _begin_bootstrap(self, idle_agent_steps: int) -> None:
        plan = self._plan
        self._is_bootstrap = True
        self.bootstraps += 1
        self._ahead = repeat(plan.forward_action, plan.bootstrap_agent_steps)
        self.action = next(self._ahead, None)
        self._told.begin(idle_agent_steps, plan)

    def _end_bootstrap(self, idle_agent_steps: int, why: str) -> None:
        self._is_bootstrap = False
        self._since_bootstrap_agent_steps = 0
        self._told.end(idle_agent_steps, why, self.bootstraps)


class BootstrapLog:
    """Start and end of a bootstrap, both or neither, not more often than one can read."""

    def __init__(self, env_index: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._env_index = env_index
        self._clock = clock
        self._rare = RareLog(TELL_EVERY_S)
        self._tells = False

    def begin(self, idle_agent_steps: int, plan: GuidePlan) -> None:
        self._tells = self._rare.allows("bootstrap", self._clock())
        if self._tells:
            ahead = {"action": plan.forward_action, "agent_steps": plan.bootstrap_agent_steps}
            extra = {"env": self._env_index, "idle_agent_steps": idle_agent_steps, **ahead}
            log.info("[actor][bootstrap] start", extra=extra)

    def end(self, idle_agent_steps: int, why: str, bootstraps: int) -> None:
        if self._tells:
            count = {"why": why, "bootstraps": bootstraps}
            extra = {"env": self._env_index, "idle_agent_steps": idle_agent_steps, **count}
            log.info("[actor][bootstrap] end", extra=extra)
