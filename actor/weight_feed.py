"""The actor's view of the broadcast weights: newest wins, foreign ones are refused."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict

from torch import nn

from common.channels import Subscriber
from common.errors import BadMessage, ProtocolMismatch
from common.logs import RareLog
from common.reject_counts import RejectCounts
from common.weights import WeightContract, WeightHeader, open_weights

log = logging.getLogger(__name__)


class WeightFeed:
    """Loads new weights into `network` when `poll` finds some."""

    def __init__(
        self,
        subscriber: Subscriber,
        network: nn.Module,
        contract: WeightContract,
        *,
        max_age_s: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Weights are stale when nothing came for `max_age_s`; 0: never."""
        self._subscriber = subscriber
        self._contract = contract
        self._tensors = network.state_dict()
        self.current: WeightHeader | None = None
        self._max_age_s = max_age_s
        self._clock = clock
        self._heard_s = clock()
        self._rare = RareLog()
        self.loaded = 0
        self.bad = RejectCounts()

    def poll(self, timeout_ms: int = 0) -> bool:
        """True when newer weights were loaded."""
        frame = self._subscriber.newest(timeout_ms)
        if frame is None:
            return False
        try:
            arrived = open_weights(frame)
            header = arrived.header
            self._check(header.contract)
            if self.current is not None and header.order <= self.current.order:
                if header.order == self.current.order:
                    self._heard_s = self._clock()
                return False
            arrived.load_into(self._tensors)
        except BadMessage as error:
            self.bad.note(error.reason)
            if self._rare.allows("weights refused", self._clock()):
                log.warning("weights refused", extra={"reason": str(error)})
            return False
        self.current = header
        self._heard_s = self._clock()
        self.loaded += 1
        return True

    def age_s(self) -> float:
        """Seconds since the learner broadcast what we play with."""
        return self._clock() - self._heard_s

    def is_stale(self) -> bool:
        return 0 < self._max_age_s < self.age_s()

    def _check(self, theirs: WeightContract) -> None:
        if theirs == self._contract:
            return
        others = asdict(theirs)
        for name, ours in asdict(self._contract).items():
            if others[name] != ours:
                raise ProtocolMismatch(
                    f"{name}: the learner has {others[name]!r}, this actor has {ours!r}; "
                    "start both with the same --config"
                )
