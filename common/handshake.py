"""A client's line to the replay server: HELLO first, questions when it is silent, HELLO again.

Used by actors, the learner and controllers; `actor/sink.py` and `learner/replay_line.py` add what
they send over it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping

from common.channels import Dealer, Frames, Network
from common.codec import Array, Received, decode, encode
from common.errors import BadMessage, ProtocolMismatch
from common.heartbeat import Identity
from common.logs import RareLog
from common.messages import (
    PROTOCOL_VERSION,
    Hello,
    Identify,
    Message,
    Ping,
    Refused,
    Scalar,
    Status,
    Welcome,
)
from common.specs import DataSpec

log = logging.getLogger(__name__)

HELLO_INTERVAL_S = 1.0
PING_INTERVAL_S = 1.0
UNANSWERED_INTERVAL_S = 2.0
COMPLAIN_INTERVAL_S = 10.0


def routing_id(identity: Identity) -> str:
    """Differs between lives, unlike the peer id: an old life must not catch the new one's mail."""
    return f"{identity.peer}.{identity.incarnation}"


def open_link(
    network: Network,
    endpoint: str,
    identity: Identity,
    spec: DataSpec,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> ServerLink:
    """A new line; the server hears of it at the first `maintain`."""
    dealer = network.dealer(endpoint, routing_id(identity))
    return ServerLink(dealer, endpoint, identity, spec, clock=clock)


class ServerLink:
    """Knows whether the server has welcomed this life of the process."""

    def __init__(
        self,
        dealer: Dealer,
        endpoint: str,
        identity: Identity,
        spec: DataSpec,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint = endpoint
        self.is_welcome = False
        self.server_incarnation = -1
        self.answered_s = -math.inf
        """What was sent before this has been dealt with or was lost: the line keeps order."""
        self.bad_messages: dict[str, int] = {}
        """By reason; the reasons are ours."""
        self.arrays: dict[str, Array] = {}
        """The arrays of the message that `receive` returned last."""
        self._dealer = dealer
        self._identity = identity
        self._spec = spec
        self._clock = clock
        self._hello_s = -HELLO_INTERVAL_S
        self._complained_s = clock()
        self._question = 0
        self._asked_s = clock()
        self._is_answered = True
        self._is_overdue = False
        """The question before this one was not answered either."""
        self._rare = RareLog()

    def maintain(self, *, waiting: bool, ping_interval_s: float = PING_INTERVAL_S) -> None:
        """Say HELLO until welcomed; while waiting, ask once a second whether to wait on.

        A question that is not answered is asked again after a while: it may have been lost.
        """
        patience_s = ping_interval_s if self._is_answered else UNANSWERED_INTERVAL_S
        now = self._clock()
        if not self.is_welcome:
            if now - self._hello_s >= HELLO_INTERVAL_S:
                self._hello_s = now
                self._say_hello()
            if now - self._complained_s >= COMPLAIN_INTERVAL_S:
                self._complained_s = now
                log.info("waiting for the replay server", extra={"endpoint": self.endpoint})
        elif waiting and now - self._asked_s >= patience_s:
            self._ask(now)

    def send(self, message: Message, arrays: Mapping[str, Array] | None = None) -> bool:
        return self.send_frames(encode(message, arrays))

    def send_frames(self, frames: Frames) -> bool:
        return self._dealer.send(frames)

    def receive(self, timeout_ms: int) -> Message | None:
        """The next message, after this link has drawn its own conclusions from it."""
        frames = self._dealer.receive(timeout_ms)
        while frames is not None:
            received = self._decoded(frames)
            if received is not None and not self._is_welcome_again(received.message):
                self.arrays = received.arrays
                self._note(received.message)
                return received.message
            frames = self._dealer.receive(0)
        return None

    def note_bad(self, error: BadMessage) -> None:
        """Count an answer that is no message, or one that who asked cannot use."""
        self.bad_messages[error.reason] = self.bad_messages.get(error.reason, 0) + 1
        if self._rare.allows("bad message", self._clock()):
            log.warning("bad message from the replay server", extra={"reason": str(error)[:200]})

    def bad_answers(self) -> dict[str, Scalar]:
        """The counts as a heartbeat tells them."""
        reasons = {f"bad_{reason}": count for reason, count in self.bad_messages.items()}
        return {"answers_bad": sum(self.bad_messages.values()), **reasons}

    def close(self) -> None:
        self._dealer.close()

    @property
    def is_silent(self) -> bool:
        """A question is overdue: the server is stopped, or the network between us is broken."""
        waited_s = self._clock() - self._asked_s
        return not self._is_answered and (self._is_overdue or waited_s >= UNANSWERED_INTERVAL_S)

    def _ask(self, now_s: float) -> None:
        self._question += 1
        self._asked_s = now_s
        self._is_overdue = not self._is_answered
        self._is_answered = False
        self.send(Ping(incarnation=self._identity.incarnation, question=self._question))

    def _decoded(self, frames: Frames) -> Received | None:
        try:
            return decode(frames)
        except BadMessage as error:
            if error.reason == "protocol":
                raise ProtocolMismatch(f"the replay server at {self.endpoint}: {error}") from error
            self.note_bad(error)
            return None

    def _is_welcome_again(self, message: Message) -> bool:
        # Each HELLO that waited for the server to start is answered; only the first answer says
        # that the server knows nothing of us yet.
        return (
            isinstance(message, Welcome)
            and self.is_welcome
            and message.server_incarnation == self.server_incarnation
        )

    def _note(self, message: Message) -> None:
        if isinstance(message, Refused):
            raise ProtocolMismatch(
                f"the replay server at {self.endpoint} refused {self._identity.peer}: "
                f"{message.what}: it has {message.expected}, we have {message.got}"
            )
        if isinstance(message, Welcome):
            self.is_welcome = True
            self.server_incarnation = message.server_incarnation
            log.info("welcomed by the replay server", extra={"endpoint": self.endpoint})
        elif isinstance(message, Identify):
            self.is_welcome = False
            self._is_answered = True
            self._hello_s = -HELLO_INTERVAL_S
        elif isinstance(message, Status):
            self.server_incarnation = message.server_incarnation
            if message.question == self._question:
                self._is_answered = True
                self.answered_s = self._asked_s

    def _say_hello(self) -> None:
        who = self._identity
        role = "controller" if who.role not in ("actor", "learner") else who.role
        self.send(
            Hello(
                protocol=PROTOCOL_VERSION,
                run_id=who.run_id,
                role=role,
                peer=who.peer,
                incarnation=who.incarnation,
                spec=self._spec,
            )
        )
