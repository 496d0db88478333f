"""A helper process of the benchmark `learner`: what actors hear from the learner and tell it.

Each of them subscribes to the weights, beats as often as an actor and ends an episode now and then;
none of them plays. Blocks come from `sender.py`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from common.channels import Subscriber
from common.codec import encode
from common.config import Settings
from common.heartbeat import HeartbeatWriter, Identity
from common.ids import new_incarnation
from common.lifecycle import StopFlag
from common.messages import Episode, Scalar
from common.phases import PHASES
from common.settings_files import load_settings
from common.transport import ZmqNetwork

TICK_S = 0.01
EPISODE_S = 2.0
"""Some 250 agent steps at the 1,000 per second that come in of eight."""


class Listener:
    """The lines of one actor to the learner."""

    def __init__(self, network: ZmqNetwork, settings: Settings, index: int) -> None:
        self._who = Identity(
            run_id=settings.run.run, role="actor", index=index, incarnation=new_incarnation()
        )
        endpoints, interval_s = settings.endpoints, settings.run.metrics_interval_s
        self._weights: Subscriber = network.subscriber(endpoints.weights_endpoint)
        self._telemetry = network.pusher(endpoints.telemetry_endpoint)
        self._heartbeat = HeartbeatWriter(self._who, None, interval_s, pusher=self._telemetry)
        self._episode_s = time.monotonic()
        self._beats = self.versions = 0

    def turn(self) -> None:
        self.versions += self._weights.newest(0) is not None
        if self._heartbeat.due():
            self._beats += 1
            self._heartbeat.beat(self._beats, "playing", beat_values())
        if time.monotonic() - self._episode_s >= EPISODE_S:
            self._episode_s = time.monotonic()
            self._telemetry.send(encode(an_episode(self._who)))


def beat_values() -> dict[str, Scalar]:
    """About as many as an actor tells."""
    counts = ("submitted", "acked", "rejected", "resent", "dropped", "acked_agent_steps")
    return {
        **{f"share_{phase}": 0.1 for phase in PHASES["actors"]},
        **{f"blocks_{name}": 1_000 for name in counts},
        "weight_generation": 1,
        "weight_version": 1,
        "weight_age_s": 1.0,
        "episodes_unsent": 0,
        "max_x": 1_000,
        "slow_steps_total": 0,
    }


def an_episode(who: Identity) -> Episode:
    return Episode(
        run_id=who.run_id,
        peer=who.peer,
        env_index=who.index,
        stage="1-1",
        from_start=True,
        agent_steps=250,
        episode_return=10.0,
        max_x=1_000,
        final_x=1_000,
        distance=960.0,
        ground=960,
        loop_backs=0,
        positive_dx_agent_steps=200,
        cleared=False,
        truncated=False,
        epsilon=0.1,
        weight_generation=1,
        weight_version=1,
    )


def main() -> int:
    job = json.loads(sys.argv[1])
    os.nice(job["niceness"])
    settings, network = load_settings(Path(job["config"])), ZmqNetwork()
    listeners = [Listener(network, settings, index) for index in range(job["actors"])]
    stop = StopFlag.on_signals()
    stop.end_with_parent(signal.SIGKILL)
    while not stop.is_set() and not stop.orphaned():
        for listener in listeners:
            listener.turn()
        time.sleep(TICK_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
