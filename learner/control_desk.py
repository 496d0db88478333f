"""What people ask of a running run: heard, carried out, answered and written down."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from common.channels import Frames, Router
from common.codec import decode, encode
from common.controls import (
    MAX_DISTANCE_WEIGHT,
    MAX_ENVIRONMENTS,
    MAX_EXPLORATION_SCALE,
    MAX_LR_SCALE,
)
from common.errors import BadMessage, ConfigError
from common.jsonl import JsonlWriter
from common.logs import RareLog
from common.messages import ControlReply, ControlRequest
from learner.controls import RunControls
from learner.ready_batch import BatchFeed

log = logging.getLogger(__name__)

MAX_MESSAGES_PER_PUMP = 64
RATIO_LIMITS = (1e-3, 1e4)


@dataclass(slots=True)
class Orders:
    """Carries out what concerns values at once; what the loop must do itself waits here for it."""

    controls: RunControls
    source: BatchFeed
    save_wanted: bool = False
    stop_wanted: bool = False

    def carry_out(self, request: ControlRequest) -> str:
        """What was done, in words; `ConfigError` for a value that cannot be."""
        value = request.value
        match request.name:
            case "exploration_scale":
                _require(request, 0, MAX_EXPLORATION_SCALE)
                self.controls.change(exploration_scale=value)
            case "distance_weight":
                _require(request, 0, MAX_DISTANCE_WEIGHT)
                self.controls.change(distance_weight=value)
            case "lr_scale":
                _require(request, 0, MAX_LR_SCALE)
                self.controls.change(lr_scale=value)
            case "environments":
                _require(request, 1, MAX_ENVIRONMENTS)
                self.controls.note_environments(int(value))
            case "samples_per_insert":
                _require(request, *RATIO_LIMITS)
                if not self.source.set_samples_per_insert(value):
                    raise ConfigError("the replay server cannot be reached now; try again")
                return f"samples_per_insert {value:g} was passed on to the replay server"
            case "checkpoint":
                self.save_wanted = True
                return "a checkpoint is being written"
            case "stop":
                self.stop_wanted = True
                return "the run saves and stops"
            case _:
                assert_never(request.name)
        return f"{request.name} is {value:g} now"


def _require(request: ControlRequest, low: float, high: float) -> None:
    if not low <= request.value <= high:
        raise ConfigError(
            f"{request.name} must be between {low:g} and {high:g}, got {request.value:g}"
        )


class ControlDesk:
    """Answers every request of this run at once; anything else is counted and dropped."""

    def __init__(
        self,
        router: Router,
        run_id: str,
        orders: Orders,
        record: JsonlWriter | None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`record` gets a line for every request: who, when, what, and what became of it."""
        self.orders = orders
        self.bad = 0
        self._router = router
        self._run_id = run_id
        self._record = record
        self._clock = clock
        self._rare = RareLog()

    def pump(self) -> None:
        """Take what has arrived, never waiting."""
        for _ in range(MAX_MESSAGES_PER_PUMP):
            arrival = self._router.receive(0)
            if arrival is None:
                return
            self._hear(*arrival)

    def close(self) -> None:
        self._router.close()
        if self._record is not None:
            self._record.close()

    def _hear(self, routing: bytes, frames: Frames) -> None:
        try:
            request = self._checked(frames)
        except BadMessage as error:
            self.bad += 1
            if self._rare.allows(error.reason, time.monotonic()):
                log.warning("bad control message", extra={"reason": str(error)[:200]})
            return
        try:
            accepted, text = True, self.orders.carry_out(request)
        except ConfigError as error:
            accepted, text = False, str(error)
        self._note(request, text, accepted=accepted)
        reply = ControlReply(request_id=request.request_id, accepted=accepted, text=text[:400])
        self._router.send(routing, encode(reply))

    def _checked(self, frames: Frames) -> ControlRequest:
        message = decode(frames).message
        if not isinstance(message, ControlRequest):
            raise BadMessage("role", "not a control request")
        if message.run_id != self._run_id:
            raise BadMessage("run_id", "a control request for another run")
        return message

    def _note(self, request: ControlRequest, text: str, *, accepted: bool) -> None:
        answer = {"words" if accepted else "refused": text}
        told = {"who": request.who, "value": request.value, **answer}
        # A line of a log has a name of its own.
        log.info("control request", extra={"control": request.name, **told})
        if self._record is not None:
            self._record.write({"time": self._clock(), "name": request.name, **told})
