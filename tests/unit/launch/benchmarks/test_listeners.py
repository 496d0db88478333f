"""What a learner hears of listeners, over real sockets."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from common.codec import decode
from common.config import Settings
from common.messages import Episode, Heartbeat
from common.phases import PHASES
from common.transport import ZmqNetwork
from launch.benchmarks import listeners
from launch.benchmarks.listeners import Listener
from launch.private_sockets import private_endpoints


def test_a_listener_takes_weights_and_tells_what_an_actor_tells(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(listeners, "EPISODE_S", 0.05)
    with private_endpoints() as endpoints:
        run = replace(Settings().run, run=tmp_path.name, metrics_interval_s=0.05)
        settings, network = replace(Settings(), endpoints=endpoints, run=run), ZmqNetwork()
        publisher = network.publisher(endpoints.weights_endpoint)
        puller = network.puller(endpoints.telemetry_endpoint)
        listener = Listener(network, settings, 3)
        told: list[object] = []
        deadline_s = time.monotonic() + 20.0

        while time.monotonic() < deadline_s and not (listener.versions and len(told) > 2):
            publisher.pump()
            publisher.publish(b"weights")
            listener.turn()
            if (frames := puller.receive(10)) is not None:
                told.append(decode(frames).message)
        network.close()

    beats = [message for message in told if isinstance(message, Heartbeat)]
    episodes = [message for message in told if isinstance(message, Episode)]
    assert listener.versions > 0
    assert {beat.peer for beat in beats} == {"actor-3"}
    assert {episode.peer for episode in episodes} == {"actor-3"}
    assert {f"share_{phase}" for phase in PHASES["actors"]} < beats[0].record.keys()
