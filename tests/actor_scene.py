"""One actor that plays the corridor, and the other ends of its lines, driven by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from actor.assembly import build
from actor.loop import ActorLoop
from common.codec import Received, decode
from common.config import Settings
from common.controls import PlayControls
from common.memory_transport import MemoryNetwork
from common.messages import Ack, BlockMessage, Heartbeat, Hello, Message, Scalar
from common.networks import build_network
from common.weights import WeightHeader, encode_weights
from tests.run_factory import corridor_settings
from tests.scripted_peers import FakeClock, ScriptedServer

THREE_ENVIRONMENTS: Mapping[str, Mapping[str, object]] = {
    "actor": {"envs_per_actor": 3, "send_window": 2},
    "run": {"metrics_interval_s": 1e-6},
}


class ActorScene:
    """The second of two actors, with three environments."""

    def __init__(
        self, runs_dir: Path, changes: Mapping[str, Mapping[str, object]] | None = None
    ) -> None:
        self.settings = corridor_settings(runs_dir, {**THREE_ENVIRONMENTS, **(changes or {})})
        endpoints = self.settings.endpoints
        self.network = MemoryNetwork()
        self.clock = FakeClock()
        self.server = ScriptedServer(self.network, endpoints.replay_endpoint)
        self.weights = self.network.publisher(endpoints.weights_endpoint)
        self.telemetry = self.network.puller(endpoints.telemetry_endpoint)
        self.actor: ActorLoop = build(self.settings, self.network, 1, clock=self.clock)

    def publish(
        self,
        agent_steps: int = 0,
        version: int = 7,
        *,
        distance_weight: float = 0.0,
        environments: int = 0,
    ) -> None:
        controls = PlayControls(
            revision=1, distance_weight=distance_weight, environments=environments
        )
        self.weights.publish(weight_frame(self.settings, agent_steps, version, controls))

    def tick(self) -> bool:
        self.clock.advance(0.01)
        return self.actor.tick()

    def answer(self) -> list[BlockMessage]:
        """Welcome and acknowledge whatever came; the blocks among it."""
        messages = self.server.read()
        for message in messages:
            if isinstance(message, Hello):
                self.server.welcome()
            elif isinstance(message, BlockMessage):
                self.server.say(Ack(sequence=message.sequence, window=4))
        return [message for message in messages if isinstance(message, BlockMessage)]

    def play(self, ticks: int) -> None:
        for _ in range(ticks):
            self.tick()
            self.answer()

    def blocks(self) -> list[Received]:
        """All that were sent so far, with their arrays."""
        return [one for one in self.server.heard if isinstance(one.message, BlockMessage)]

    def told(self) -> list[Message]:
        messages = []
        while (frames := self.telemetry.receive(0)) is not None:
            messages.append(decode(frames).message)
        return messages

    def beats(self) -> list[dict[str, Scalar]]:
        return [told.record for told in self.told() if isinstance(told, Heartbeat)]

    def states(self) -> list[object]:
        return [record["state"] for record in self.beats()]


def weight_frame(
    settings: Settings, agent_steps: int, version: int, controls: PlayControls
) -> bytes:
    torch.manual_seed(0)
    quantiles = settings.learner.num_quantiles
    network = build_network(settings.learner.network, settings.spec, quantiles)
    header = WeightHeader(
        run_id=settings.run.run,
        generation=3,
        version=version,
        agent_steps=agent_steps,
        stage_shares={},
        controls=controls,
        network=settings.learner.network,
        num_quantiles=quantiles,
        spec=settings.spec,
    )
    return encode_weights(header, network.state_dict())
