"""Nothing but `BadMessage` comes out of decoding, whatever a peer sends.

`WARPZONE_FUZZ_EXAMPLES` sets the number of examples per test, for longer runs.
"""

from __future__ import annotations

import gc
import os
import random
import tracemalloc
from itertools import pairwise
from typing import Any

import msgpack
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common.blocks import StepBlock, validate_block
from common.codec import Buffer, decode, seal
from common.errors import BadMessage
from common.messages import MESSAGES
from common.weights import open_weights
from tests.message_factory import SPEC, WEIGHT_SHAPES, example_frames, example_weights_frame
from tests.weight_reading import decode_weights

EXAMPLES_PER_TEST = int(os.environ.get("WARPZONE_FUZZ_EXAMPLES", "200"))
MESSAGES_PER_ROUND = 50 * EXAMPLES_PER_TEST
FUZZ = settings(
    max_examples=EXAMPLES_PER_TEST,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

FRAMES = {tag: example_frames(tag) for tag in MESSAGES}
HEADERS: dict[str, Any] = {tag: msgpack.unpackb(frames[0][:-4]) for tag, frames in FRAMES.items()}
WEIGHTS = example_weights_frame()

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def decode_safely(frames: list[Buffer]) -> None:
    try:
        received = decode(frames)
    except BadMessage:
        return
    assert received.message.tag in MESSAGES


def decode_weights_safely(frame: Buffer) -> None:
    for read in (open_weights, lambda data: decode_weights(data, WEIGHT_SHAPES)):
        try:
            read(frame)
        except BadMessage:
            continue


@st.composite
def damaged(draw: st.DrawFn, original: bytes) -> bytes:
    """Bytes replaced, cut out or put in, at up to four places."""
    data = bytearray(original)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 8)))
        data[start:end] = draw(st.binary(max_size=8))
    return bytes(data)


def replace_somewhere(draw: st.DrawFn, value: Any) -> Any:
    """A copy with one value, at any depth, replaced by anything."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: replace_somewhere(draw, value[key])}
    if isinstance(value, list) and value and draw(st.booleans()):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], replace_somewhere(draw, value[index]), *value[index + 1 :]]
    return draw(VALUES)


@FUZZ
@given(data=st.data(), tag=st.sampled_from(sorted(MESSAGES)))
def test_damaged_frames_give_a_message_or_bad_message(data: st.DataObject, tag: str) -> None:
    frames = list(FRAMES[tag])
    index = data.draw(st.integers(0, len(frames) - 1))
    frames[index] = data.draw(damaged(bytes(frames[index])))

    decode_safely(frames)


@st.composite
def altered_headers(draw: st.DrawFn) -> tuple[str, bytes]:
    tag = draw(st.sampled_from(sorted(MESSAGES)))
    return tag, seal(msgpack.packb(replace_somewhere(draw, HEADERS[tag])))


@FUZZ
@given(altered=altered_headers())
def test_headers_with_other_values_give_a_message_or_bad_message(
    altered: tuple[str, bytes],
) -> None:
    tag, header = altered

    decode_safely([header, *FRAMES[tag][1:]])


@FUZZ
@given(frames=st.lists(st.binary(max_size=64), max_size=20))
def test_random_frames_give_bad_message(frames: list[Buffer]) -> None:
    decode_safely(frames)


@st.composite
def altered_weights(draw: st.DrawFn) -> bytes:
    length = int.from_bytes(WEIGHTS[:4], "little")
    header = msgpack.unpackb(WEIGHTS[4:length])
    packed = seal(msgpack.packb(replace_somewhere(draw, header)))
    return len(packed).to_bytes(4, "little") + packed + WEIGHTS[4 + length :]


@FUZZ
@given(frame=damaged(WEIGHTS) | altered_weights() | st.binary(max_size=64))
def test_damaged_weights_give_weights_or_bad_message(frame: bytes) -> None:
    decode_weights_safely(frame)


@FUZZ
@given(data=st.data())
def test_any_numbers_in_a_block_give_a_block_or_bad_message(data: st.DataObject) -> None:
    arrays = dict(decode(FRAMES["step_block"]).arrays)
    name = data.draw(st.sampled_from(sorted(set(arrays) - {"frames"})))
    array = arrays[name]
    raw = data.draw(damaged(array.tobytes())).ljust(array.nbytes, b"\xff")[: array.nbytes]
    arrays[name] = np.frombuffer(raw, dtype=array.dtype)

    try:
        validate_block(StepBlock(**arrays), SPEC)
    except BadMessage:
        return


def test_many_damaged_messages_leave_no_memory_behind() -> None:
    rng = random.Random(11)
    tags = sorted(MESSAGES)
    totals = []
    tracemalloc.start()
    try:
        for _ in range(3):
            for _ in range(MESSAGES_PER_ROUND):
                decode_safely(quickly_damaged(FRAMES[rng.choice(tags)], rng))
            gc.collect()
            totals.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()

    # The less of two rounds: in one of them the interpreter's table of names may double.
    assert min(after - before for before, after in pairwise(totals)) < 64 * 1024


def quickly_damaged(frames: list[Buffer], rng: random.Random) -> list[Buffer]:
    damaged_frames = list(frames)
    index = 0 if rng.random() < 0.8 else rng.randrange(len(frames))
    data = bytearray(frames[index])
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    damaged_frames[index] = data
    return damaged_frames
