"""Plays single episodes with a fixed network, for evaluation: nothing is learned from them.

One forward pass per agent step, for one environment: a batch of another size may round
differently, and an evaluation must give the same play whoever shares the machine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from actor.env.episode import FRAMES_PER_SECOND
from actor.env.interface import EnvProtocol, Info, SceneryEnv, VisibleEnv
from actor.env.scenery import Scenery
from common.blocks import U8
from common.errors import EnvironmentFailed
from common.evaluation import EpisodeResult, EpisodeTask
from common.moments import Moment
from common.networks import infer
from common.quantiles import q_values
from common.specs import DataSpec
from common.traces import Trace

_MANY_AGENT_STEPS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """An episode that has ended, and how to repeat it if it was a clear."""

    result: EpisodeResult
    trace: Trace | None


class EpisodePlayer:
    """Owns an environment; `begin`, then `advance` until it returns the episode."""

    def __init__(
        self, env: EnvProtocol, network: nn.Module, spec: DataSpec, *, epsilon: float
    ) -> None:
        self._env = env
        self._network = network
        self._num_actions = spec.num_actions
        self._no_action = spec.no_action
        self._epsilon = epsilon
        self._task: EpisodeTask | None = None
        self._rng = np.random.default_rng(0)
        self._observation: U8 = np.zeros(0, dtype=np.uint8)
        self._prev_action = self._no_action
        self._agent_steps = 0
        self._return = 0.0
        self._max_x = 0
        self._info: Info = {}
        self._quantiles: torch.Tensor | None = None
        """Of the newest choice, [1, actions, quantiles]; None where the network was not asked."""

    def begin(self, task: EpisodeTask) -> None:
        self._task = task
        self._rng = np.random.default_rng(task.seed)
        options = {"stage": task.stage, "noop_frames": task.noop_frames}
        self._observation, info = self._env.reset(seed=task.seed, options=options)
        self._prev_action = self._no_action
        self._agent_steps = 0
        self._return = 0.0
        self._max_x = int(info["x_pos"])
        self._info, self._quantiles = info, None

    def advance(self, agent_steps: int) -> Played | None:
        """Play some agent steps; the episode if it ended."""
        for _ in range(agent_steps):
            played = self.step(self._choose())
            if played is not None:
                return played
        return None

    def step(self, action: int) -> Played | None:
        """One agent step with an action that somebody chose; the episode if it ended."""
        if self._task is None:
            raise EnvironmentFailed("no episode was begun")
        observation, reward, terminated, truncated, info = self._env.step(action)
        self._observation, self._prev_action, self._info = observation, action, info
        self._agent_steps += 1
        self._return += reward
        self._max_x = max(self._max_x, int(info["x_pos"]))
        if terminated or truncated:
            return self._end(self._task, info, truncated=truncated)
        return None

    def play(self, task: EpisodeTask) -> Played:
        """A whole episode."""
        self.begin(task)
        while (played := self.advance(_MANY_AGENT_STEPS)) is None:
            pass
        return played

    def look(self) -> Moment:
        """What a person would see now; also right after the end of an episode."""
        env, info = self._env, self._info
        if not isinstance(env, VisibleEnv):
            raise EnvironmentFailed("this environment has no screen to look at")
        values = () if self._quantiles is None else q_values(self._quantiles)[0].tolist()
        return Moment(
            screen=env.screen(),
            stage=f"{info['world']}-{info['stage']}",
            x=int(info["x_pos"]),
            time_left=int(info["time"]),
            seconds=int(info["frames"]) / FRAMES_PER_SECOND,
            agent_steps=self._agent_steps,
            action=self._prev_action if self._agent_steps else None,
            action_labels=env.action_labels,
            q_values=tuple(values),
            cleared=bool(info["flag_get"]),
        )

    def scenery(self) -> Scenery | None:
        """What of the screen belongs to the level, where the game can tell."""
        return self._env.scenery() if isinstance(self._env, SceneryEnv) else None

    def close(self) -> None:
        self._env.close()

    def _choose(self) -> int:
        if self._task is None:
            raise EnvironmentFailed("no episode was begun")
        if self._epsilon and self._rng.random() < self._epsilon:
            self._quantiles = None
            return int(self._rng.integers(self._num_actions))
        greedy, self._quantiles = infer(
            self._network,
            torch.from_numpy(self._observation).unsqueeze(0),
            torch.tensor([self._prev_action]),
        )
        return int(greedy[0])

    def _end(self, task: EpisodeTask, info: Info, *, truncated: bool) -> Played:
        cleared = bool(info["flag_get"])
        result = EpisodeResult(
            stage=task.stage,
            episode=task.episode,
            seed=task.seed,
            noop_frames=int(info["noop_frames"]),
            cleared=cleared,
            truncated=truncated,
            agent_steps=self._agent_steps,
            episode_return=round(self._return, 4),
            max_x=self._max_x,
            distance=int(info["distance"]),
            seconds=round(int(info["frames"]) / FRAMES_PER_SECOND, 2),
        )
        self._task = None
        return Played(result=result, trace=self._env.trace() if cleared else None)
