"""A helper process of the benchmark `pipeline`: Stable-Baselines3's DQN on the same environment.

Its own Nature network or ours, as many samples per agent step as we take, as many environments as
we have, each in a process; torch may use every core.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from common.config import EnvSettings, Settings
from common.networks import build_network
from launch.benchmarks.plain_update import values_of
from launch.benchmarks.processor import Worked, cores_between, worked
from launch.benchmarks.scene import answer

EXPLORATION = 0.05
"""Its own final value. It falls over a tenth of the agent steps, which here never come."""


def make_env(core: str) -> Any:
    settings = EnvSettings(core=core)  # type: ignore[arg-type] # our own word, checked there
    return import_module("actor.env.factory").make_env(settings)


class OurNature(nn.Module):
    """Our network `nature` where Stable-Baselines3 wants its own: scaled pixels to a value each.

    The previous action, which its environments do not tell, is none.
    """

    def __init__(self, _observation_space: object) -> None:
        super().__init__()
        self._spec = Settings().spec
        self.network = build_network("nature", self._spec)
        self.features_dim = self._spec.num_actions

    def forward(self, pixels: Tensor) -> Tensor:
        features = self.network.body(pixels)
        none = torch.full((len(pixels),), self._spec.no_action, device=pixels.device)
        return values_of(self.network, features, none).mean(dim=2)


TOLD = ("agent_steps_per_s", "updates_per_s", "samples_per_agent_step", "cores")


class Reading(NamedTuple):
    """At one end of the window."""

    time_s: float
    agent_steps: int
    updates: int
    worked: Worked


class Window:
    """Measures from the first update on; ends training when the time is over."""

    def __init__(self, learning_starts: int, seconds: float, batch_size: int) -> None:
        self._learning_starts = learning_starts
        self._seconds = seconds
        self._batch_size = batch_size
        self._began: Reading | None = None
        self.told = dict.fromkeys(TOLD, 0.0)

    def __call__(self, names: Mapping[str, Any], _: Mapping[str, Any]) -> bool:
        steps, now_s = int(names["self"].num_timesteps), time.monotonic()
        if steps <= self._learning_starts:
            return True
        # Its own counter of updates, which it has no public word for.
        updates = int(names["self"]._n_updates)
        if self._began is None:
            self._began = Reading(now_s, steps, updates, worked(os.getpid()))
        goes_on = now_s - self._began.time_s < self._seconds
        if not goes_on:
            self._tell(self._began, Reading(now_s, steps, updates, worked(os.getpid())))
        return goes_on

    def _tell(self, began: Reading, ended: Reading) -> None:
        elapsed_s = max(ended.time_s - began.time_s, 1e-9)
        steps, updates = ended.agent_steps - began.agent_steps, ended.updates - began.updates
        self.told = {
            "agent_steps_per_s": steps / elapsed_s,
            "updates_per_s": updates / elapsed_s,
            "samples_per_agent_step": updates * self._batch_size / max(steps, 1),
            # Its environments are processes that it started.
            "cores": sum(cores_between(began.worked, ended.worked, elapsed_s).values()),
        }


OURS = {"features_extractor_class": OurNature, "net_arch": []}
"""What it adds behind ours is one product of seven by seven."""


def train(job: Mapping[str, Any]) -> Mapping[str, float]:
    """Agent steps and updates per second, learning included, and the processor cores it took."""
    vec_env = import_module("stable_baselines3.common.vec_env")
    makers: list[Callable[[], Any]] = [partial(make_env, job["core"])] * job["envs"]
    envs = vec_env.SubprocVecEnv(makers)
    # One update of a batch for so many turns of all environments.
    turns = job["batch_size"] / job["samples_per_insert"] / job["envs"]
    window = Window(job["learning_starts"], job["seconds"], job["batch_size"])
    try:
        model = import_module("stable_baselines3").DQN(
            "CnnPolicy",
            envs,
            buffer_size=job["capacity"],
            learning_starts=job["learning_starts"],
            batch_size=job["batch_size"],
            train_freq=max(round(turns), 1),
            gradient_steps=max(round(1 / turns), 1),
            device="auto",
            # As it plays for nine tenths of its training: with its network, not at random.
            exploration_initial_eps=EXPLORATION,
            exploration_final_eps=EXPLORATION,
            policy_kwargs=OURS if job["our_network"] else {},
        )
        model.learn(total_timesteps=10**9, callback=window)
    finally:
        envs.close()
    return window.told


if __name__ == "__main__":
    answer(train(json.loads(sys.argv[1])))
