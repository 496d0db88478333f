"""A helper process of the benchmark `weights`: an actor that only follows the weights."""

from __future__ import annotations

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from common.devices import limit_torch_threads
from common.inference import PreparedNetwork
from common.networks import build_network
from common.settings_files import load_settings
from common.transport import ZmqNetwork
from common.weights import weight_contract
from launch.benchmarks.scene import answer, commands

TICK_S = 0.002
"""About an agent step: an actor looks for weights once in each."""


def follow(feed: Any, prepared: PreparedNetwork, seconds: float) -> dict[str, object]:
    """Which versions were in use when, by a clock that all processes share, and what it cost."""
    uses: list[tuple[int, float]] = []
    processor_s = elapsed_s = 0.0
    began_s, others_s = time.monotonic(), _other_threads_s()
    while (now_s := time.monotonic()) - began_s < seconds:
        used_s = time.thread_time()
        if feed.poll():
            prepared.refresh()
            uses.append((feed.current.version, time.monotonic()))
        processor_s += time.thread_time() - used_s
        elapsed_s += time.monotonic() - now_s
        time.sleep(TICK_S)
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
    network = ZmqNetwork()
    net = build_network(chosen.network, settings.spec, chosen.num_quantiles).eval()
    prepared = PreparedNetwork(net)
    feed = import_module("actor.weight_feed").WeightFeed(
        network.subscriber(settings.endpoints.weights_endpoint), net, weight_contract(settings)
    )
    for command in commands():
        answer(follow(feed, prepared, command["seconds"]))
    network.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
