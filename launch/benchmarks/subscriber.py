"""A helper process of the benchmark `weights`: an actor that follows the weights, and may play."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from common.config import EnvSettings
from common.devices import limit_torch_threads
from common.inference import PreparedNetwork
from common.networks import build_network
from common.settings_files import load_settings
from common.transport import ZmqNetwork
from common.weights import weight_contract
from launch.benchmarks.scene import answer, commands

TICK_S = 0.002
"""About an agent step: an actor looks for weights once in each."""


def rest() -> None:
    time.sleep(TICK_S)


def player(
    env_settings: EnvSettings, actions: int, prepared: PreparedNetwork
) -> Callable[[], None]:
    """An agent step at each call: what the network says is worked out, any button is pressed."""
    env = import_module("actor.env.factory").make_env(env_settings)
    buttons = random.Random(1)  # noqa: S311 - which button, no secret
    seen, _ = env.reset(seed=1)
    action = 0

    def step() -> None:
        nonlocal seen, action
        prepared.infer(torch.from_numpy(seen)[None], torch.tensor([action]))
        action = buttons.randrange(actions)
        seen, _, is_lost, is_over, _ = env.step(action)
        if is_lost or is_over:
            seen, _ = env.reset()

    return step


def follow(
    feed: Any, prepared: PreparedNetwork, seconds: float, tick: Callable[[], None] = rest
) -> dict[str, object]:
    """Which versions were in use when, by a clock that all processes share, and what it cost."""
    uses: list[tuple[int, float]] = []
    processor_s = elapsed_s = 0.0
    began_s, others_s = time.monotonic(), _other_threads_s()
    while (now_s := time.monotonic()) - began_s < seconds:
        used_s = time.thread_time()
        if feed.poll():
            prepared.refresh()
            uses.append((feed.current.version, time.monotonic()))
            # Not of looks that find nothing: while others play, a wait for a core may begin there.
            elapsed_s += time.monotonic() - now_s
        processor_s += time.thread_time() - used_s
        tick()
    return {
        "uses": uses,
        "processor_s": processor_s + _other_threads_s() - others_s,
        "elapsed_s": elapsed_s,
        "seconds": time.monotonic() - began_s,
    }


def _other_threads_s() -> float:
    """Processor time of all threads but this one: ZeroMQ's own, which receives the frames."""
    return time.process_time() - time.thread_time()


def main() -> int:
    job = json.loads(sys.argv[1])
    limit_torch_threads(1)
    settings = load_settings(Path(job["config"]))
    chosen = settings.learner
    net = build_network(chosen.network, settings.spec, chosen.num_quantiles).eval()
    prepared = PreparedNetwork(net)
    tick = rest
    if job["core"]:
        # Before there are sockets: on Linux a thread is as nice as the one that starts it.
        os.nice(import_module("actor.main").ACTOR_NICENESS)
        tick = player(replace(settings.env, core=job["core"]), settings.spec.num_actions, prepared)
    network = ZmqNetwork()
    # Who publishes waits for this line, so everything else has to be there.
    feed = import_module("actor.weight_feed").WeightFeed(
        network.subscriber(settings.endpoints.weights_endpoint), net, weight_contract(settings)
    )
    for command in commands():
        answer(follow(feed, prepared, command["seconds"], tick))
    network.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
