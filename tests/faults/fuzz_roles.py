"""Who says the damaged messages: an intruder that was let in, and what its role may say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import zmq

from common.codec import Array, decode, encode
from common.config import Settings
from common.messages import (
    PROTOCOL_VERSION,
    BlockMessage,
    ControlRequest,
    Hello,
    InlineBatchReply,
    Message,
    SampleRequest,
    Welcome,
)
from common.networks import build_network
from common.state_dicts import plain_state_dict
from common.weights import WeightHeader, encode_weights, weight_contract
from tests.block_factory import cut_block, random_play
from tests.faults.mutations import Example
from tests.learner_factory import random_batch
from tests.message_factory import EXAMPLES, example_arrays

INCARNATION = 1
ANSWER_DEADLINE_MS = 60_000
LEARNER_TAGS = (
    "sample_request",
    "priority_update",
    "cut_request",
    "set_limit",
    "stats_request",
    "ping",
)


def hello(settings: Settings, role: Any) -> list[bytes]:
    message = Hello(
        protocol=PROTOCOL_VERSION,
        run_id=settings.run.run,
        role=role,
        peer=f"{role}-7",
        incarnation=INCARNATION,
        spec=settings.spec,
    )
    return [bytes(frame) for frame in encode(message, {})]


def join(socket: zmq.Socket[bytes], settings: Settings, role: str) -> Welcome:
    """Be let in at the replay server."""
    socket.connect(settings.endpoints.replay_endpoint)
    socket.send_multipart(hello(settings, role))
    assert socket.poll(ANSWER_DEADLINE_MS), f"no answer to the HELLO of a {role}"
    answer = decode(socket.recv_multipart()).message
    assert isinstance(answer, Welcome), answer
    return answer


def examples_of(role: str, settings: Settings, welcome: Welcome) -> list[Example]:
    """What this role may say, such that the server would take it."""
    if role == "actor":
        right = replace(_block_message(), incarnation=INCARNATION)
        wrong = replace(right, incarnation=INCARNATION + 1)
        arrays = _block_arrays(settings)
        return [(right, arrays)] * 6 + [(wrong, arrays), (EXAMPLES["ping"], {})]
    made = {tag: EXAMPLES[tag] for tag in LEARNER_TAGS}
    life = {"server_incarnation": welcome.server_incarnation}
    made["priority_update"] = replace(made["priority_update"], **life)
    return [(message, example_arrays(tag)) for tag, message in made.items()]


def telemetry_of(settings: Settings) -> list[Example]:
    """As the actors of this run send it."""
    owner = {"run_id": settings.run.run}
    return [(replace(EXAMPLES[tag], **owner), {}) for tag in ("heartbeat", "episode")]


def wishes_of(settings: Settings) -> list[Example]:
    """As a person of this run asks; not for the end of it."""
    wish = EXAMPLES["control"]
    assert isinstance(wish, ControlRequest)
    return [(replace(wish, run_id=settings.run.run), {})]


def weights_of(settings: Settings) -> bytes:
    """As the learner of this run would send them."""
    contract = weight_contract(settings)
    network = build_network("small", settings.spec, settings.learner.num_quantiles)
    header = WeightHeader(
        run_id=contract.run_id,
        generation=1,
        version=1,
        agent_steps=0,
        stage_shares={},
        network=contract.network,
        num_quantiles=contract.num_quantiles,
        spec=contract.spec,
    )
    return encode_weights(header, plain_state_dict(network))


def batch_for(
    request: SampleRequest, settings: Settings
) -> tuple[InlineBatchReply, dict[str, Array]]:
    """What a sound server would answer."""
    example = EXAMPLES["batch_inline"]
    assert isinstance(example, InlineBatchReply)
    reply = replace(example, request_id=request.request_id)
    batch = random_batch(request.batch_size, settings.spec)
    return reply, {name: getattr(batch, name).numpy() for name in reply.arrays}


def whole(message: Message, arrays: Mapping[str, Array]) -> list[bytes]:
    return [bytes(frame) for frame in encode(message, arrays)]


def _block_message() -> BlockMessage:
    message = EXAMPLES["step_block"]
    assert isinstance(message, BlockMessage)
    return message


def _block_arrays(settings: Settings) -> dict[str, Array]:
    steps = random_play(40, settings.spec, np.random.default_rng(1))
    return asdict(cut_block(steps, 0, 16, settings.spec))
