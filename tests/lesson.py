"""A learner with a real replay server in the same process and a scripted actor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from common.codec import encode
from common.config import Settings
from common.memory_transport import MemoryNetwork
from common.messages import BlockMessage, Message
from common.run_paths import RunPaths
from common.weights import WeightHeader, open_weights
from learner.assembly import build
from learner.loop import LearnerLoop
from learner.team import Team
from replay_server.assembly import build as build_replay
from tests.block_factory import cut_blocks, random_play
from tests.scripted_peers import FakeClock, ScriptedClient, identity

BLOCK_ITEMS = 16


class Lesson:
    """Everything but actors; `feed` and `tell` play their part."""

    def __init__(
        self,
        settings: Settings,
        resume: Path | None = None,
        team: Team | None = None,
        *,
        is_alone: bool = True,
    ) -> None:
        """Alone it does one thing after the other, as in lockstep."""
        self.settings = settings
        self.paths = RunPaths.of(settings.run)
        self.clock = FakeClock()
        network = MemoryNetwork()
        endpoints = settings.endpoints
        self.server = build_replay(settings, network)
        self.weights = network.subscriber(endpoints.weights_endpoint)
        self.loop: LearnerLoop = build(
            settings,
            network,
            resume=resume,
            clock=self.clock,
            is_alone=is_alone,
            team=team,
            threads=1 if is_alone else 2,
        )
        who = identity("actor", run_id=settings.run.run)
        self.actor = ScriptedClient(network, who, settings.spec, endpoints.replay_endpoint)
        self.actor.say_hello()
        self.telemetry = network.pusher(endpoints.telemetry_endpoint)
        self.sequence = 0
        self.headers: list[WeightHeader] = []
        """Of the weights that were published, one after each turn of the learner at most."""

    def feed(self, num_blocks: int) -> None:
        rng = np.random.default_rng(self.sequence)
        spec = self.settings.spec
        steps = random_play(BLOCK_ITEMS * (num_blocks + 4), spec, rng)
        for block in cut_blocks(steps, BLOCK_ITEMS, spec)[:num_blocks]:
            message = BlockMessage(
                incarnation=1,
                sequence=self.sequence,
                env_index=0,
                weight_generation=0,
                weight_version=0,
                stage="1-1",
            )
            self.sequence += 1
            arrays = {name: getattr(block, name) for name in message.arrays}
            self.actor.say(message, arrays)

    def settle(self) -> None:
        while self.server.tick():
            pass
        self.actor.read()

    def run(self, ticks: int) -> int:
        """Updates made in this many ticks of the learner."""
        before = self.updates
        for _ in range(ticks):
            if self.loop.is_done:
                break
            self.clock.advance(0.3)
            self.settle()
            self.loop.tick()
            frame = self.weights.newest(0)
            if frame is not None:
                self.headers.append(open_weights(frame).header)
        return self.updates - before

    def tell(self, message: Message) -> None:
        """Say something as an actor that the learner hears in its next turn."""
        self.telemetry.send(encode(message))

    @property
    def published(self) -> list[int]:
        """Versions."""
        return [header.version for header in self.headers]

    @property
    def updates(self) -> int:
        return self.loop._learner.updates

    def close(self) -> None:
        self.loop.close()
        self.server.close()


def changed(settings: Settings, section: str, changes: Mapping[str, object]) -> Settings:
    new = replace(getattr(settings, section), **changes)
    return replace(settings, **{section: new})
