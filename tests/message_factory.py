"""One valid example of every message, always the same, for golden bytes and for mutations."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch

from common.codec import Array, Buffer, encode
from common.messages import (
    PROTOCOL_VERSION,
    Ack,
    BatchReply,
    BlockMessage,
    ControlReply,
    ControlRequest,
    CutRequest,
    Episode,
    Heartbeat,
    Hello,
    Identify,
    InlineBatchReply,
    Message,
    Ping,
    PriorityUpdate,
    Refused,
    Reject,
    SampleRequest,
    SetLimit,
    Stats,
    StatsRequest,
    Status,
    Welcome,
)
from common.specs import DataSpec
from common.weights import WeightHeader, encode_weights

SPEC = DataSpec(height=2, width=4, stack=4, num_actions=7, n_step=5)
INCARNATION = 1_760_000_000_123_456_789
BATCH_SIZE = 3
WEIGHT_SHAPES: dict[str, tuple[int, ...]] = {"body.weight": (2, 3), "body.bias": (2,)}

_BATCH_FIELDS = {
    "request_id": 41,
    "server_incarnation": INCARNATION,
    "size": 5_000,
    "inserted_total": 6_000,
    "sampled_total": 24_000,
    "slot": 2,
}


def _example_messages() -> tuple[Message, ...]:
    return (
        Hello(
            protocol=PROTOCOL_VERSION,
            run_id="golden-run",
            role="actor",
            peer="actor-3",
            incarnation=INCARNATION,
            spec=SPEC,
        ),
        Welcome(server_incarnation=INCARNATION, window=4),
        Refused(what="run", expected="golden-run", got="other-run"),
        Identify(server_incarnation=INCARNATION),
        BlockMessage(
            incarnation=INCARNATION,
            sequence=17,
            env_index=3,
            weight_generation=INCARNATION,
            weight_version=1_200,
            stage="1-1",
        ),
        Ack(sequence=17, window=4),
        Reject(sequence=18, reason="block_reward", window=0),
        Ping(incarnation=INCARNATION, question=9),
        Status(
            server_incarnation=INCARNATION,
            question=9,
            window=0,
            size=5_000,
            capacity=200_000,
            mass=1234.5,
            inserted_total=6_000,
            sampled_total=24_000,
            samples_per_insert=4.0,
            credit=16_032.5,
            gate="wait_for_learner",
        ),
        SampleRequest(
            request_id=41,
            batch_size=BATCH_SIZE,
            beta=0.4,
            charge=BATCH_SIZE,
            may_wait=True,
            shared_file="warpzone-0123456789abcdef-1",
            slot=2,
            slot_rows=BATCH_SIZE,
        ),
        BatchReply(mass=1234.5, min_priority=0.125, credit=8_032.5, **_BATCH_FIELDS),
        InlineBatchReply(mass=1234.5, min_priority=0.125, credit=8_032.5, **_BATCH_FIELDS),
        PriorityUpdate(server_incarnation=INCARNATION),
        CutRequest(agent_steps=650_016),
        SetLimit(samples_per_insert=8.0),
        StatsRequest(),
        Stats(values={"replay_size": 5_000, "samples_per_insert": 3.9, "bottleneck": None}),
        ControlRequest(
            run_id="golden-run",
            request_id=5,
            who="somebody at a terminal",
            name="exploration_scale",
            value=1.5,
        ),
        ControlReply(request_id=5, accepted=True, text="exploration_scale is 1.5 now"),
        Heartbeat(
            run_id="golden-run",
            peer="actor-3",
            record={"role": "actor", "progress": 128, "cpu_percent": 99.5, "gpu_error": None},
        ),
        Episode(
            run_id="golden-run",
            peer="actor-3",
            env_index=3,
            stage="1-1",
            from_start=True,
            agent_steps=321,
            episode_return=57.25,
            max_x=3_161,
            final_x=3_161,
            distance=3_121.0,
            ground=3_121,
            loop_backs=0,
            positive_dx_agent_steps=300,
            cleared=True,
            truncated=False,
            epsilon=0.01,
            weight_generation=INCARNATION,
            weight_version=1_200,
        ),
    )


EXAMPLES: dict[str, Message] = {message.tag: message for message in _example_messages()}


def example_arrays(tag: str) -> dict[str, Array]:
    if tag == BlockMessage.tag:
        return _block_arrays()
    if tag == InlineBatchReply.tag:
        return _batch_arrays()
    if tag == PriorityUpdate.tag:
        ids = np.arange(BATCH_SIZE, dtype=np.int64)
        errors = np.array([0.5, 0.0, 2.0], dtype=np.float32)
        return {"slots": ids, "generations": ids + 7, "errors": errors}
    return {}


def _block_arrays() -> dict[str, Array]:
    """Eight items at the start of an episode and four steps of look-ahead."""
    steps = np.arange(12)
    actions = (steps % SPEC.num_actions).astype(np.uint8)
    frames = np.arange(13 * SPEC.frame_bytes, dtype=np.uint8)
    return {
        "frames": frames.reshape(13, SPEC.height, SPEC.width),
        "actions": actions,
        "rewards": (steps / 8 - 1).astype(np.float32),
        "flags": np.zeros(12, dtype=np.uint8),
        "frame_index": steps.astype(np.uint16),
        "episode_first": np.zeros(12, dtype=np.uint16),
        "prev_actions": np.array([SPEC.no_action, *actions[:7]], dtype=np.uint8),
        "priorities": (steps[:8] / 4).astype(np.float32),
        "scripted": (steps < 3).astype(np.uint8),
    }


def _batch_arrays() -> dict[str, Array]:
    images = (BATCH_SIZE, SPEC.stack, SPEC.height, SPEC.width)
    pixels = np.arange(np.prod(images), dtype=np.uint8).reshape(images)
    integers = np.arange(BATCH_SIZE, dtype=np.int64)
    floats = np.arange(BATCH_SIZE, dtype=np.float32) / 8
    return {
        "observations": pixels,
        "next_observations": pixels[::-1].copy(),
        "actions": integers,
        "prev_actions": integers + 1,
        "next_prev_actions": integers + 2,
        "returns": floats - 1,
        "discounts": floats + 0.5,
        "weights": 1 - floats,
        "slots": integers + 100,
        "generations": integers + 1_000,
    }


def example_frames(tag: str) -> list[Buffer]:
    """What crosses the wire, as bytes of our own."""
    return [bytes(frame) for frame in encode(EXAMPLES[tag], example_arrays(tag))]


def example_weight_header(**changes: int) -> WeightHeader:
    numbers = {"generation": INCARNATION, "version": 1_200, "agent_steps": 6_000, **changes}
    return WeightHeader(
        run_id="golden-run",
        stage_shares={"1-1": 0.25, "1-2": 0.75},
        network="small",
        num_quantiles=32,
        spec=SPEC,
        generation=numbers["generation"],
        version=numbers["version"],
        agent_steps=numbers["agent_steps"],
    )


def example_tensors() -> Mapping[str, torch.Tensor]:
    return {
        name: torch.arange(int(np.prod(shape)), dtype=torch.float32).reshape(shape) / 4
        for name, shape in WEIGHT_SHAPES.items()
    }


def example_weights_frame() -> bytes:
    return encode_weights(example_weight_header(), example_tensors())
