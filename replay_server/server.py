"""The replay server's poll loop: bytes in, the service's answers out, nothing takes it down."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from common.channels import Frames, Router
from common.codec import decode, encode
from common.errors import BadMessage, ConfigError
from common.heartbeat import HeartbeatWriter
from common.logs import RareLog
from common.messages import PROTOCOL_VERSION, Refused, Scalar
from replay_server.report import fill_words
from replay_server.service import Answer, ReplayService

log = logging.getLogger(__name__)

POLL_MS = 50
MAX_MESSAGES_PER_TICK = 64
STAT_INTERVAL_S = 60.0


class ReplayServer:
    """Implements `common.component.Component`."""

    def __init__(
        self,
        router: Router,
        service: ReplayService,
        heartbeat: HeartbeatWriter,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._stat_s: float | None = None
        """When the log was told last how full the buffer is."""
        self._router = router
        self._service = service
        self._heartbeat = heartbeat
        self._rare = RareLog()
        self._timer = service.buffer.shares
        self._handled = 0
        self._has_told = False

    @property
    def is_done(self) -> bool:
        """Only a signal ends it."""
        return False

    def waits_for(self) -> str | None:
        return self._service.waits_for()

    def tick(self) -> bool:
        """Handle what has arrived and serve who waits, then let held actors go on."""
        handled = 0
        with self._timer.phase("wait"):
            arrival = self._router.receive(POLL_MS)
        while arrival is not None:
            self._handle(*arrival)
            # Before the blocks of other actors: a learner that waits learns nothing.
            self._send(self._service.serve_waiting())
            handled += 1
            arrival = self._router.receive(0) if handled < MAX_MESSAGES_PER_TICK else None
        self._send(self._service.settle())
        self._handled += handled
        if self._heartbeat.due() or self._has_news():
            with self._timer.phase("logging"):
                self._beat()
        return handled > 0

    def finish(self, deadline_s: float) -> None:
        if self._service.cuts is not None:
            self._service.cuts.finish(deadline_s)
        self._stat_s = None
        self._beat()

    def close(self) -> None:
        self._router.close()
        self._heartbeat.close()

    def _handle(self, routing: bytes, frames: Frames) -> None:
        try:
            with self._timer.phase("decode"):
                received = decode(frames)
            answers = self._service.handle(routing, received)
        except BadMessage as error:
            self._service.counts.note_bad(error.reason)
            self._complain(routing, error)
            if error.reason == "protocol":
                refusal = Refused(
                    what="protocol version", expected=str(PROTOCOL_VERSION), got=str(error)
                )
                self._send([Answer(routing, refusal)])
        except ConfigError as error:
            refusal = Refused(
                what="setting", expected="a value that can work", got=str(error)[:300]
            )
            self._send([Answer(routing, refusal)])
        else:
            self._send(answers)

    def _complain(self, routing: bytes, error: BadMessage) -> None:
        # The routing id is the peer's choice: it is shown as escaped bytes, and cut.
        peer = repr(routing[:60])
        if self._rare.allows(peer, self._clock()):
            log.warning("bad message", extra={"peer": peer, "reason": str(error)[:200]})

    def _send(self, answers: Iterable[Answer]) -> None:
        with self._timer.phase("send"):
            for answer in answers:
                frames = encode(answer.message, answer.arrays)
                if not self._router.send(answer.routing, frames):
                    self._service.counts.unsent_answers += 1

    def _has_news(self) -> bool:
        """The first block that was stored: the launcher asks for it when this life ends."""
        is_news = self._service.buffer.inserted_blocks_total > 0 and not self._has_told
        self._has_told = self._has_told or is_news
        return is_news

    def _beat(self) -> None:
        values: dict[str, Scalar] = {
            f"share_{name}": round(share, 4) for name, share in self._timer.shares().items()
        }
        metrics = self._service.metrics()
        self._log_fill(metrics)
        values.update(metrics)
        for reason, count in self._service.counts.bad_messages.items():
            values[f"bad_{reason}"] = count
        waits_for = self._service.waits_for()
        state = "serving" if waits_for is None else f"waiting for {waits_for}"
        self._heartbeat.beat(self._handled, state, values)

    def _log_fill(self, metrics: Mapping[str, Scalar]) -> None:
        """Once a minute as soon as there is something, and at the end."""
        now, last = self._clock(), self._stat_s
        if metrics["replay_size"] and (last is None or now - last >= STAT_INTERVAL_S):
            self._stat_s = now
            log.info("[stat]", extra=fill_words(metrics))
