"""One wish to the learner of a running run, and its answer."""

from __future__ import annotations

import getpass
import os
import socket
import time

from common.channels import Frames
from common.codec import decode, encode
from common.config import Settings
from common.endpoints import check_host, from_here
from common.errors import BadMessage, PeerUnavailable, ProtocolMismatch
from common.ids import new_incarnation
from common.messages import ControlReply, ControlRequest, Message
from common.transport import ZmqNetwork

POLL_MS = 100
MAX_WHO_LENGTH = 80


def asked_by() -> str:
    """Who sits at this terminal, for the record of the run."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"[:MAX_WHO_LENGTH]


def request_for(settings: Settings, name: str, value: float, who: str) -> ControlRequest:
    return ControlRequest(
        run_id=settings.run.run,
        request_id=time.time_ns() // 1_000,
        who=who,
        name=name,  # type: ignore[arg-type] # one of the flags of launch/control.py
        value=value,
    )


def ask_learner(settings: Settings, request: ControlRequest, timeout_s: float) -> ControlReply:
    """Ask once; the line keeps the question until the learner hears it, or the time is over."""
    endpoint = from_here(settings.endpoints.control_endpoint)
    check_host(endpoint)
    network = ZmqNetwork(keys_dir=settings.endpoints.keys_dir)
    try:
        dealer = network.dealer(endpoint, f"controller-0.{new_incarnation()}")
        end_s = time.monotonic() + timeout_s
        is_sent = False
        while time.monotonic() < end_s:
            is_sent = is_sent or dealer.send(encode(request))
            frames = dealer.receive(POLL_MS)
            reply = None if frames is None else _decoded(frames)
            if isinstance(reply, ControlReply) and reply.request_id == request.request_id:
                return reply
    finally:
        network.close()
    raise PeerUnavailable(f"no answer from {endpoint} within {timeout_s} s; is the run going on?")


def _decoded(frames: Frames) -> Message:
    try:
        return decode(frames).message
    except BadMessage as error:
        raise ProtocolMismatch(f"the learner answers in another language: {error}") from error
