"""Which action leads forward: the one that was named, the best of all that were tried, or right."""

from __future__ import annotations

import logging

from actor.env.corridor import WALK
from actor.env.interface import EnvProtocol
from actor.gains import GroundSource
from common.config import EnvSettings
from common.game import actions_of

log = logging.getLogger(__name__)


def default_forward_action(env: EnvSettings) -> int:
    """Right with B, or right where the action set has no B."""
    if env.game == "corridor":
        return WALK
    actions = actions_of(env.actions)
    running = ("right", "B")
    return actions.index(running if running in actions else ("right",))


class ForwardProbe:
    """Tries every action from the start of the stage. Reset the environment before play."""

    def __init__(self, env: EnvProtocol, source: GroundSource, *, seed: int) -> None:
        self._env = env
        self._source = source
        self._seed = seed

    def best(self, agent_steps: int) -> int | None:
        """The action with most new ground in so many agent steps; None when none had any."""
        gains = [self._try(action, agent_steps) for action in range(self._env.num_actions)]
        for action, dx in enumerate(gains):
            log.info("[scripted][probe]", extra={"action": action, "dx": dx})
        most = max(gains)
        return gains.index(most) if most > 0 else None

    def _try(self, action: int, agent_steps: int) -> int:
        """Pixels of new ground while the action is held, or until the episode ends."""
        _, info = self._env.reset(seed=self._seed, options={"noop_frames": 0})
        self._source.begin(info)
        total = 0
        for _ in range(agent_steps):
            _, _, terminated, truncated, info = self._env.step(action)
            total += self._source.gained(info) or 0
            if terminated or truncated:
                break
        return total
