"""Broadcasts weights: one serialisation per version, whatever the number of actors."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from torch import nn

from common.channels import Publisher
from common.controls import PlayControls
from common.state_dicts import plain_state_dict
from common.weights import WeightContract, WeightHeader, encode_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What the actors are told besides the tensors."""

    agent_steps: int
    stage_shares: Mapping[str, float] = field(default_factory=dict)
    """How often each stage is to be played."""
    controls: PlayControls = field(default_factory=PlayControls)


class WeightPublisher:
    """Publishes when the version has grown by the interval, and answers late subscribers."""

    def __init__(  # noqa: PLR0913 - what it says, and when
        self,
        socket: Publisher,
        contract: WeightContract,
        *,
        generation: int,
        interval_updates: int,
        repeat_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`generation` is new at every start, so that older versions are believed again.

        After `repeat_s` the same version is said again, so that actors that wait for us can tell
        a learner that waits for them from one that is gone; 0: never.
        """
        self._socket = socket
        self._contract = contract
        self.generation = generation
        self._interval_updates = interval_updates
        self._repeat_s = repeat_s
        self._clock = clock
        self._published_s = clock()
        self.version = -1
        self._revision = -1

    def publish(self, network: nn.Module, version: int, news: News) -> None:
        header = WeightHeader(
            run_id=self._contract.run_id,
            generation=self.generation,
            version=version,
            agent_steps=news.agent_steps,
            stage_shares=dict(news.stage_shares),
            controls=news.controls,
            network=self._contract.network,
            num_quantiles=self._contract.num_quantiles,
            spec=self._contract.spec,
        )
        self._socket.publish(encode_weights(header, plain_state_dict(network)))
        self._published_s = self._clock()
        self.version = version
        self._revision = news.controls.revision

    def is_due(self, version: int, controls: PlayControls) -> bool:
        """Also when the controls have changed: actors need not wait for the next version."""
        if controls.revision != self._revision:
            return True
        waited_s = self._clock() - self._published_s
        is_repeated = 0 < self._repeat_s <= waited_s
        return is_repeated or version - self.version >= self._interval_updates

    @property
    def odd_events(self) -> int:
        return self._socket.odd_events

    def pump(self) -> int:
        return self._socket.pump()

    def close(self) -> None:
        self._socket.close()
