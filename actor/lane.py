"""One environment as the actor sees it: its observation, its episode, its block in the making."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from actor.block_builder import BlockBuilder, PlayedStep
from actor.env.interface import EnvProtocol, Info
from common.blocks import FLAG_TERMINATED, FLAG_TRUNCATED, U8, StepBlock
from common.specs import DataSpec
from common.traces import Trace

# A pixel jump beyond this in one agent step is a pipe or a loop-back, not distance.
MAX_DX_PER_AGENT_STEP = 40


@dataclass(slots=True, kw_only=True)
class EpisodeSummary:
    """What is known of an episode, so far or when it has ended."""

    agent_steps: int = 0
    episode_return: float = 0.0
    start_x: int = 0
    final_x: int = 0
    max_x: int = 0
    stage: str = ""
    distance: float = 0.0
    ground: int = 0
    loop_backs: int = 0
    positive_dx_agent_steps: int = 0
    cleared: bool = False
    truncated: bool = False


class Lane:
    """Owns one environment; `act` plays one agent step and returns the episode if it ended."""

    def __init__(
        self,
        env: EnvProtocol,
        builder: BlockBuilder,
        spec: DataSpec,
        *,
        seed: int,
        choose_stage: Callable[[], str],
    ) -> None:
        self._env = env
        self._choose_stage = choose_stage
        self.stage = ""
        """That is being played."""
        self._builder = builder
        self._no_action = spec.no_action
        self.prev_action = spec.no_action
        self.summary = EpisodeSummary()
        self.trace: Trace | None = None
        """Of the episode that ended last, if it was a clear."""
        self.observation: U8 = self._begin(seed)

    def act(self, step: PlayedStep) -> EpisodeSummary | None:
        """Play `step.action`; the rest of `step` is filled in from what the game answers."""
        observation, reward, terminated, truncated, info = self._env.step(step.action)
        step.reward = reward
        step.flag = FLAG_TERMINATED if terminated else FLAG_TRUNCATED if truncated else 0
        self._builder.add_step(step, self._env.frame)
        self._note(reward, info)
        self.observation, self.prev_action = observation, step.action
        if step.flag == 0:
            return None
        finished = self.summary
        finished.truncated = truncated
        finished.cleared = bool(info["flag_get"])
        self.trace = self._env.trace() if finished.cleared else None
        self.observation = self._begin(None)
        return finished

    def take_block(self) -> StepBlock | None:
        return self._builder.take_block()

    def flush(self) -> list[StepBlock]:
        return self._builder.flush()

    def close(self) -> None:
        self._env.close()

    def _begin(self, seed: int | None) -> U8:
        self.stage = self._choose_stage()
        observation, info = self._env.reset(seed=seed, options={"stage": self.stage})
        self._builder.begin_episode(self._env.frame)
        self.prev_action = self._no_action
        x = int(info.get("x_pos", 0))
        self.summary = EpisodeSummary(stage=self.stage, start_x=x, final_x=x, max_x=x)
        return np.asarray(observation)

    def _note(self, reward: float, info: Info) -> None:
        summary = self.summary
        x = int(info["x_pos"])
        dx = x - summary.final_x
        summary.agent_steps += 1
        summary.episode_return += reward
        summary.final_x = x
        summary.max_x = max(summary.max_x, x)
        summary.ground = int(info["distance"])
        summary.loop_backs = int(info["loop_backs"])
        if abs(dx) <= MAX_DX_PER_AGENT_STEP:
            summary.distance += dx
            summary.positive_dx_agent_steps += dx > 0
