"""Delivers blocks to the replay server: numbered, acknowledged, within a window, resent if lost.

The promise: a block that was submitted is acknowledged, rejected, or counted as dropped at the
end. The server recognises resent blocks, so each is stored once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from common.channels import Frames
from common.handshake import ServerLink
from common.messages import Ack, BlockMessage, Message, Reject, Scalar, Status, Welcome

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Unacked:
    frames: Frames
    num_items: int
    sent_s: float | None
    """None until the socket took it."""


@dataclass(slots=True)
class SinkCounts:
    """In blocks, but for `acked_agent_steps`."""

    submitted: int = 0
    acked: int = 0
    rejected: int = 0
    resent: int = 0
    dropped: int = 0
    acked_agent_steps: int = 0


class BlockSink:
    """One owner, one thread: call `pump` often; it never waits longer than it is told."""

    def __init__(
        self, link: ServerLink, window: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._link = link
        self._own_window = window
        self._window = 0
        self._clock = clock
        self._unacked: dict[int, _Unacked] = {}
        self.counts = SinkCounts()

    @property
    def next_sequence(self) -> int:
        return self.counts.submitted

    def may_submit(self) -> bool:
        """Back-pressure: false while the window is used up or the server asks to wait."""
        return self._link.is_welcome and len(self._unacked) < self._window

    def waits_for(self) -> str | None:
        """Whom we wait for, in words, or None."""
        if not self._link.is_welcome:
            return f"replay server at {self._link.endpoint}"
        if self.may_submit():
            return None
        if self._link.is_silent:
            return f"replay server at {self._link.endpoint}, which does not answer"
        return "learner to catch up"

    def bad_answers(self) -> dict[str, Scalar]:
        """For the heartbeat."""
        return self._link.bad_answers()

    def submit(self, message: BlockMessage, frames: Frames, num_items: int) -> None:
        """Take over a block that carries `next_sequence`; it is sent now or at the next pump."""
        if message.sequence != self.next_sequence:
            raise ValueError(f"expected sequence {self.next_sequence}, got {message.sequence}")
        self.counts.submitted += 1
        self._unacked[message.sequence] = _Unacked(frames, num_items, None)
        self._send_unsent()

    def pump(self, timeout_ms: int = 0) -> None:
        """Read answers, ask after silence, send what has not been sent."""
        self._link.maintain(waiting=bool(self._unacked) or not self.may_submit())
        while (message := self._link.receive(timeout_ms)) is not None:
            self._handle(message)
            timeout_ms = 0
        self._send_unsent()

    def drain(self, deadline_s: float, refill: Callable[[], None] = lambda: None) -> None:
        """Give the last blocks a chance to be acknowledged; count the rest as dropped.

        `refill` is called whenever the window may have room again.
        """
        end_s = self._clock() + deadline_s
        refill()
        while self._unacked and self._clock() < end_s:
            self.pump(timeout_ms=50)
            refill()
        self.counts.dropped += len(self._unacked)
        self._unacked.clear()

    def drop_unsubmitted(self, count: int) -> None:
        """Count blocks that the window never had room for, so that the sum stays right."""
        self.counts.submitted += count
        self.counts.dropped += count

    def _handle(self, message: Message) -> None:
        if isinstance(message, Ack | Reject | Welcome | Status):
            self._window = min(self._own_window, message.window)
        if isinstance(message, Ack):
            self._settle(message.sequence, accepted=True)
        elif isinstance(message, Reject):
            log.warning("block rejected", extra={"reason": message.reason})
            self._settle(message.sequence, accepted=False)
        elif isinstance(message, Welcome):
            self._mark_unsent(before_s=self._clock())
        elif isinstance(message, Status):
            # A block sent before an answered question was acknowledged before the answer or lost.
            self._mark_unsent(before_s=self._link.answered_s)

    def _settle(self, sequence: int, *, accepted: bool) -> None:
        block = self._unacked.pop(sequence, None)
        if block is None:
            return
        if accepted:
            self.counts.acked += 1
            self.counts.acked_agent_steps += block.num_items
        else:
            self.counts.rejected += 1

    def _mark_unsent(self, before_s: float) -> None:
        for block in self._unacked.values():
            if block.sent_s is not None and block.sent_s < before_s:
                block.sent_s = None
                self.counts.resent += 1

    def _send_unsent(self) -> None:
        if not self._link.is_welcome:
            return
        for block in self._unacked.values():
            if block.sent_s is None:
                if not self._link.send_frames(block.frames):
                    return
                block.sent_s = self._clock()
