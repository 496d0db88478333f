"""Broadcasts weights: one serialisation per version, whatever the number of actors."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from common.channels import Publisher
from common.specs import DataSpec
from common.state_dicts import plain_state_dict
from common.weights import WeightHeader, encode_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightOrigin:
    """What every version of this life of the learner has in common."""

    run_id: str
    generation: int
    network: str
    num_quantiles: int
    spec: DataSpec


class WeightPublisher:
    """Publishes when the version has grown by the interval, and answers late subscribers."""

    def __init__(self, socket: Publisher, origin: WeightOrigin, interval_updates: int) -> None:
        self._socket = socket
        self._origin = origin
        self._interval_updates = interval_updates
        self.version = -1

    def publish(self, network: nn.Module, version: int, agent_steps: int) -> None:
        header = WeightHeader(
            run_id=self._origin.run_id,
            generation=self._origin.generation,
            version=version,
            agent_steps=agent_steps,
            network=self._origin.network,
            num_quantiles=self._origin.num_quantiles,
            spec=self._origin.spec,
        )
        self._socket.publish(encode_weights(header, plain_state_dict(network)))
        self.version = version

    def is_due(self, version: int) -> bool:
        return version - self.version >= self._interval_updates

    def pump(self) -> int:
        return self._socket.pump()

    def close(self) -> None:
        self._socket.close()
