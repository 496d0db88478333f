"""The actor's view of the broadcast weights: newest wins, foreign ones are refused."""

from __future__ import annotations

import logging
from dataclasses import asdict

from torch import nn

from common.channels import Subscriber
from common.errors import BadMessage, ProtocolMismatch
from common.specs import DataSpec
from common.weights import WeightHeader, decode_header, decode_weights

log = logging.getLogger(__name__)


class WeightFeed:
    """Loads new weights into `network` when `poll` finds some."""

    def __init__(self, subscriber: Subscriber, network: nn.Module, run_id: str, spec: DataSpec):
        self._subscriber = subscriber
        self._network = network
        self._run_id = run_id
        self._spec = spec
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
            self._check_run(header)
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

    def _check_run(self, header: WeightHeader) -> None:
        if header.run_id != self._run_id:
            raise ProtocolMismatch(
                f"the learner runs {header.run_id!r}, this actor belongs to {self._run_id!r}"
            )
        if header.spec != self._spec:
            raise ProtocolMismatch(
                f"the learner's data is {asdict(header.spec)}, this actor's {asdict(self._spec)}"
            )
