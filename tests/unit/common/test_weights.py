from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

import msgpack
import pytest
import torch

from common.codec import seal
from common.errors import BadMessage
from common.messages import MAX_HEADER_BYTES
from common.weights import encode_weights, open_weights
from tests.message_factory import (
    WEIGHT_SHAPES,
    example_tensors,
    example_weight_header,
    example_weights_frame,
)
from tests.weight_reading import decode_weights

FRAME = example_weights_frame()
HEADER_END = 4 + struct.unpack("<I", FRAME[:4])[0]
BODY = FRAME[HEADER_END:]


def header_values() -> dict[str, Any]:
    values: dict[str, Any] = msgpack.unpackb(FRAME[4 : HEADER_END - 4])
    return values


def frame_of(values: object, body: bytes = BODY) -> bytes:
    packed = seal(msgpack.packb(values))
    return struct.pack("<I", len(packed)) + packed + body


def reason_of(frame: bytes) -> str:
    with pytest.raises(BadMessage) as caught:
        decode_weights(frame, WEIGHT_SHAPES)
    return caught.value.reason


def test_header_can_be_read_without_the_tensors() -> None:
    assert open_weights(FRAME).header == example_weight_header()


def test_tensors_are_copies_that_outlive_the_frame() -> None:
    frame = bytearray(FRAME)

    _, tensors = decode_weights(frame, WEIGHT_SHAPES)
    frame[:] = bytes(len(frame))

    for name, tensor in example_tensors().items():
        assert torch.equal(tensors[name], tensor)


def test_tensors_that_are_not_contiguous_are_sent_as_they_look() -> None:
    tensors = {"w": torch.arange(6, dtype=torch.float32).reshape(2, 3).t()}

    _, decoded = decode_weights(encode_weights(example_weight_header(), tensors), {"w": (3, 2)})

    assert torch.equal(decoded["w"], tensors["w"])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"version": 1}, {"version": 2}),
        ({"generation": 1, "version": 900}, {"generation": 2, "version": 1}),
        ({"version": 1, "agent_steps": 5}, {"version": 1, "agent_steps": 6}),
    ],
)
def test_newest_wins_and_a_new_generation_beats_any_version(
    older: dict[str, int], newer: dict[str, int]
) -> None:
    assert example_weight_header(**older).order < example_weight_header(**newer).order


def test_frames_cut_at_every_byte_are_refused() -> None:
    for end in range(len(FRAME)):
        assert reason_of(FRAME[:end]) in {"weight_size", "header_size"}


def test_every_flipped_bit_is_noticed() -> None:
    for bit in range(8 * len(FRAME)):
        damaged, index = bytearray(FRAME), bit // 8
        damaged[index] ^= 1 << bit % 8
        reasons = {"weight_hash"} if index >= HEADER_END else {"checksum", "header_size"}
        assert reason_of(bytes(damaged)) in reasons


def test_bytes_after_the_tensors_are_refused() -> None:
    assert reason_of(FRAME + b"\0") == "weight_size"


@pytest.mark.parametrize("length", [0, 4, 28, 31])
def test_a_body_of_another_length_with_the_right_hash_is_refused(length: int) -> None:
    body = bytes(length)
    values = {**header_values(), "h": hashlib.sha256(body).hexdigest()}

    assert reason_of(frame_of(values, body)) == "weight_size"


@pytest.mark.parametrize("length", [MAX_HEADER_BYTES + 1, 2**32 - 1])
def test_a_header_that_announces_too_much_is_refused(length: int) -> None:
    assert reason_of(struct.pack("<I", length) + b"\x90" * 100_000) == "header_size"


ROWS = [[name, list(shape)] for name, shape in WEIGHT_SHAPES.items()]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "weight_names"),
        (ROWS[:1], "weight_names"),
        (ROWS[::-1], "weight_names"),
        ([*ROWS, ["more", [1]]], "weight_names"),
        ([*ROWS, ROWS[1]], "weight_names"),
        ([["other.weight", [2, 3]], ROWS[1]], "weight_names"),
        ([["body.weight", [3, 2]], ROWS[1]], "weight_shape"),
        ([["body.weight", [6]], ROWS[1]], "weight_shape"),
        ([["body.weight", []], ROWS[1]], "weight_shape"),
        ([["body.weight", [-2, -3]], ROWS[1]], "weight_shape"),
        ([["body.weight", [2**63, 2]], ROWS[1]], "weight_shape"),
        ([["body.weight", [2.0, 3]], ROWS[1]], "weight_rows"),
        ([["body.weight", [math.inf]], ROWS[1]], "weight_rows"),
        ([["body.weight", [math.nan]], ROWS[1]], "weight_rows"),
        ([["body.weight", ["2", "3"]], ROWS[1]], "weight_rows"),
        ([["body.weight", [True]], ROWS[1]], "weight_rows"),
        ([["body.weight", "23"], ROWS[1]], "weight_rows"),
        ([["body.weight"], ROWS[1]], "weight_rows"),
        ([[1, [2, 3]], ROWS[1]], "weight_rows"),
        ([None], "weight_rows"),
        ("ab", "weight_rows"),
        ({"body.weight": [2, 3]}, "weight_rows"),
        (None, "weight_rows"),
    ],
)
def test_tensors_that_the_network_does_not_have_are_refused(rows: object, reason: str) -> None:
    assert reason_of(frame_of({**header_values(), "t": rows})) == reason


@pytest.mark.parametrize("digest", [None, "", 5, [], "0" * 64, hashlib.sha256(b"x").hexdigest()])
def test_a_wrong_hash_is_refused(digest: object) -> None:
    assert reason_of(frame_of({**header_values(), "h": digest})) == "weight_hash"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"protocol": 1}, "protocol"),
        ({"run_id": "../x"}, "field_text"),
        ({"version": -1}, "field_range"),
        ({"version": True}, "field_type"),
        ({"generation": 2**63}, "field_range"),
        ({"num_quantiles": 0}, "field_range"),
        ({"network": "x" * 33}, "field_range"),
        ({"spec": {}}, "field_names"),
        ({"more": 1}, "field_names"),
    ],
)
def test_wrong_header_fields_are_refused(changes: dict[str, object], reason: str) -> None:
    values = header_values()
    values["f"] = {**values["f"], **changes}

    assert reason_of(frame_of(values)) == reason


@pytest.mark.parametrize(
    "raw",
    [
        b"\xdd\x00\x00\xff\xff" * 1024,
        b"\x91" * 1000 + b"\x90",
        b"\x82\xa1f\x80\xa1f\x80",
        b"\xd6\xff\0\0\0\1",
        b"\x81\x01\x01",
        b"\xc0",
        b"",
    ],
)
def test_headers_that_are_no_map_of_the_three_keys_are_refused(raw: bytes) -> None:
    frame = struct.pack("<I", len(raw) + 4) + seal(raw)

    assert reason_of(frame) in {"msgpack", "header_fields", "duplicate_key"}
