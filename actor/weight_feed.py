"""The actor's view of the broadcast weights: newest wins, foreign ones are refused."""

from __future__ import annotations

import logging
from dataclasses import asdict

from torch import nn

from common.channels import Subscriber
from common.errors import BadMessage, ProtocolMismatch
from common.weights import WeightContract, WeightHeader, decode_header, decode_weights

log = logging.getLogger(__name__)


class WeightFeed:
    """Loads new weights into `network` when `poll` finds some."""

    def __init__(
        self, subscriber: Subscriber, network: nn.Module, contract: WeightContract
    ) -> None:
        self._subscriber = subscriber
        self._network = network
        self._contract = contract
        self._expected = {
            name: tuple(tensor.shape) for name, tensor in network.state_dict().items()
        }
        self.current: WeightHeader | None = None
        self.loaded = 0
        self.bad = 0

    def poll(self, timeout_ms: int = 0) -> bool:
        """True when newer weights were loaded."""
        frame = self._subscriber.newest(timeout_ms)
        if frame is None:
            return False
        try:
            header = decode_header(frame)
            self._check(header.contract)
            if self.current is not None and header.order <= self.current.order:
                return False
            header, tensors = decode_weights(frame, self._expected)
        except BadMessage as error:
            self.bad += 1
            log.warning("weights refused", extra={"reason": str(error)})
            return False
        self._network.load_state_dict(tensors)
        self.current = header
        self.loaded += 1
        return True

    def _check(self, theirs: WeightContract) -> None:
        for name, ours in asdict(self._contract).items():
            other = asdict(theirs)[name]
            if other != ours:
                raise ProtocolMismatch(
                    f"{name}: the learner has {other!r}, this actor has {ours!r}; "
                    "start both with the same --config"
                )
