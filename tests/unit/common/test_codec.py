"""Bad bytes give `BadMessage` with the right reason; the fuzz is in test_codec_fuzz.py."""

from __future__ import annotations

import tracemalloc
import zlib
from typing import Any

import msgpack
import numpy as np
import pytest

from common.codec import Buffer, decode, encode, seal, unpack_header
from common.errors import BadMessage
from common.messages import MAX_ARRAYS, MAX_HEADER_BYTES, MESSAGES, PROTOCOL_VERSION, Ping
from tests.message_factory import EXAMPLES, example_arrays, example_frames

MEMORY_LIMIT_BYTES = 16 * 1024 * 1024
PING = {"v": PROTOCOL_VERSION, "t": "ping", "f": {"incarnation": 1, "question": 1}, "a": []}


def header(**changes: object) -> bytes:
    return seal(msgpack.packb({**PING, **changes}))


def reason_of(frames: list[Buffer]) -> str:
    with pytest.raises(BadMessage) as caught:
        decode(frames)
    return caught.value.reason


def priority_frames(row: object, frame: bytes = b"\0" * 8) -> list[Buffer]:
    """A priority update whose first array is described by `row`."""
    good = ["u1", [1], zlib.crc32(b"\0")]
    fields = {"server_incarnation": 1}
    return [header(t="priority_update", f=fields, a=[row, good, good]), frame, b"\0", b"\0"]


def test_arrays_are_views_of_the_frames_and_cannot_be_written() -> None:
    frames = example_frames("priority_update")

    array = decode(frames).arrays["slots"]

    assert np.shares_memory(array, np.frombuffer(frames[1], dtype=np.uint8))
    assert not array.flags.writeable


def test_encode_does_not_copy_contiguous_arrays() -> None:
    arrays = example_arrays("priority_update")

    frames = encode(EXAMPLES["priority_update"], arrays)

    assert np.shares_memory(np.frombuffer(frames[1], dtype=np.uint8), arrays["slots"])


def test_encode_takes_arrays_that_are_not_contiguous() -> None:
    arrays = example_arrays("priority_update")
    arrays["slots"] = np.arange(6, dtype=np.int64)[::2]

    received = decode(encode(EXAMPLES["priority_update"], arrays))

    assert received.arrays["slots"].tolist() == [0, 2, 4]


@pytest.mark.parametrize("count", [0, MAX_ARRAYS + 2, 10_000])
def test_wrong_numbers_of_frames_are_refused(count: int) -> None:
    assert reason_of([header()] * count) == "frame_count"


def test_missing_and_additional_array_frames_are_refused() -> None:
    frames = example_frames("step_block")

    assert reason_of(frames[:-1]) == "array_count"
    assert reason_of([*frames, b""]) == "array_count"


@pytest.mark.parametrize("size", [MAX_HEADER_BYTES + 1, 2 * 1024 * 1024])
def test_long_headers_are_refused_before_they_are_read(size: int) -> None:
    assert reason_of([b"\x90" * size]) == "header_size"


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        pytest.param(b"", "msgpack", id="nothing"),
        pytest.param(b"\xc1", "msgpack", id="byte that msgpack never uses"),
        pytest.param(b"\x90" * (MAX_HEADER_BYTES - 4), "msgpack", id="many empty arrays"),
        pytest.param(header()[:-4] + b"\x00", "msgpack", id="trailing byte"),
        pytest.param(b"\x91" * 1025 + b"\x90", "msgpack", id="depth 1025"),
        pytest.param(b"\x91" * 60_000 + b"\x90", "msgpack", id="depth 60000"),
        pytest.param(b"\x91" * 900 + b"\x90", "header_fields", id="depth 900"),
        pytest.param(b"\xdd\xff\xff\xff\xff", "msgpack", id="array of 4 G"),
        pytest.param(b"\xdf\xff\xff\xff\xff", "msgpack", id="map of 4 G"),
        pytest.param(b"\xc6\xff\xff\xff\xff", "msgpack", id="bin of 4 G"),
        pytest.param(b"\xdb\xff\xff\xff\xff", "msgpack", id="str of 4 G"),
        pytest.param(b"\xc9\xff\xff\xff\xff\x01", "msgpack", id="ext of 4 G"),
        pytest.param(b"\xdc\x04\x00" * 1024, "msgpack", id="nested arrays of 1024"),
        pytest.param(b"\xc4\x01x", "msgpack", id="bin"),
        pytest.param(b"\xd4\x05x", "msgpack", id="ext"),
        pytest.param(b"\xd6\xff\0\0\0\1", "msgpack", id="timestamp"),
        pytest.param(b"\xc7\x00\x05", "header_fields", id="empty ext"),
        pytest.param(b"\xc7\x00\xff", "msgpack", id="empty timestamp"),
        pytest.param(b"\x81\x01\x01", "msgpack", id="integer key"),
        pytest.param(b"\x81\x90\x01", "msgpack", id="array as key"),
        pytest.param(b"\x82\xa1v\x01\xa1v\x02", "duplicate_key", id="duplicate key"),
        pytest.param(b"\x81\xa1\xff\x01", "msgpack", id="key not UTF-8"),
        pytest.param(b"\xc0", "header_fields", id="nil"),
        pytest.param(b"\x90", "header_fields", id="array"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", "msgpack", id="HTTP"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00", "msgpack", id="TLS hello"),
    ],
)
def test_headers_that_are_no_message_are_refused(raw: bytes, reason: str) -> None:
    assert reason_of([seal(raw)]) == reason
    assert reason_of([raw]) == "checksum"


@pytest.mark.parametrize("depth", [900, 1020])
def test_deep_nesting_where_a_version_belongs_is_refused(depth: int) -> None:
    nested = b"\x91" * depth + b"\x90"
    raw = b"\x84\xa1v" + nested + b"\xa1t\xa4ping\xa1f\x80\xa1a\x90"

    assert reason_of([seal(raw)]) == "header_fields"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"v": 1}, "protocol"),
        ({"v": 0}, "protocol"),
        ({"v": 2**64 - 1}, "protocol"),
        ({"v": True}, "header_fields"),
        ({"v": 1.0}, "header_fields"),
        ({"v": "1"}, "header_fields"),
        ({"v": None}, "header_fields"),
        ({"t": "pong"}, "unknown_message"),
        ({"t": 7}, "unknown_message"),
        ({"t": ["ping"]}, "unknown_message"),
        ({"t": ""}, "unknown_message"),
        ({"a": None}, "array_count"),
        ({"a": {}}, "array_count"),
        ({"a": [[]]}, "array_count"),
        ({"f": None}, "field_type"),
        ({"f": []}, "field_type"),
        ({"f": {}}, "field_names"),
        ({"f": {"incarnation": 1, "more": 1}}, "field_names"),
        ({"more": 1}, "header_fields"),
    ],
)
def test_wrong_header_entries_are_refused(changes: dict[str, object], reason: str) -> None:
    assert reason_of([header(**changes)]) == reason


def test_another_protocol_version_names_both_sides() -> None:
    with pytest.raises(BadMessage, match=f"version {PROTOCOL_VERSION}, the peer 99"):
        decode([header(v=99)])


@pytest.mark.parametrize("missing", ["v", "t", "f", "a"])
def test_missing_header_entries_are_refused(missing: str) -> None:
    rest = {key: value for key, value in PING.items() if key != missing}

    assert reason_of([seal(msgpack.packb(rest))]) == "header_fields"


CRC = zlib.crc32(b"\0" * 8)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (["u1", [8]], "array_row"),
        (["u1", [8], CRC, 0], "array_row"),
        ("u1", "array_row"),
        ({"u1": 1}, "array_row"),
        (["O", [8], CRC], "array_dtype"),
        (["object", [1], CRC], "array_dtype"),
        ([">f8", [1], CRC], "array_dtype"),
        (["V8", [1], CRC], "array_dtype"),
        (["f8", [1], CRC], "array_dtype"),
        ([1, [8], CRC], "array_dtype"),
        ([["u1"], [8], CRC], "array_dtype"),
        (["u1", [], CRC], "array_shape"),
        (["u1", [0], CRC], "array_shape"),
        (["u1", [0, 2**28, 2**28, 2**28], CRC], "array_shape"),
        (["u1", [-8], CRC], "array_shape"),
        (["u1", [-1], CRC], "array_shape"),
        (["u1", [True], CRC], "array_shape"),
        (["u1", [8.0], CRC], "array_shape"),
        (["u1", ["8"], CRC], "array_shape"),
        (["u1", [2, 2, 2, 1, 1], CRC], "array_shape"),
        (["u1", [2**63], CRC], "array_shape"),
        (["u1", {"8": 1}, CRC], "array_shape"),
        (["u1", 8, CRC], "array_shape"),
        (["u1", [9], CRC], "array_size"),
        (["u1", [7], CRC], "array_size"),
        (["i8", [8], CRC], "array_size"),
        (["u1", [2**28, 2**28, 2**28, 2**28], CRC], "array_size"),
        (["i8", [2**20, 2**20, 2**21, 1], CRC], "array_size"),
        (["u1", [8], CRC + 1], "checksum"),
        (["u1", [8], -CRC], "checksum"),
        (["u1", [8], None], "checksum"),
        (["u1", [8], [CRC]], "checksum"),
    ],
)
def test_wrong_array_rows_are_refused(row: object, reason: str) -> None:
    assert reason_of(priority_frames(row)) == reason


def test_a_good_array_row_is_accepted() -> None:
    assert decode(priority_frames(["i8", [1], CRC])).arrays["slots"].tolist() == [0]


@pytest.mark.parametrize("tag", sorted(MESSAGES))
def test_headers_cut_at_every_byte_are_refused(tag: str) -> None:
    first, *rest = example_frames(tag)

    for end in range(len(first)):
        assert reason_of([first[:end], *rest]) == "checksum"


@pytest.mark.parametrize("tag", sorted(MESSAGES))
def test_every_flipped_bit_of_a_header_is_noticed(tag: str) -> None:
    first, *rest = example_frames(tag)

    for bit in range(8 * len(first)):
        damaged = bytearray(first)
        damaged[bit // 8] ^= 1 << bit % 8
        assert reason_of([damaged, *rest]) == "checksum"


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_peer_whose_version_had_no_checksum_is_told_its_version(version: int) -> None:
    with pytest.raises(BadMessage, match=f"version {PROTOCOL_VERSION}, the peer {version}"):
        decode([msgpack.packb({**PING, "v": version})])


@pytest.mark.parametrize("version", [0, 4, 5, True])
def test_a_newer_header_without_a_checksum_is_not_believed(version: int) -> None:
    assert reason_of([msgpack.packb({**PING, "v": version})]) == "checksum"


@pytest.mark.parametrize("tag", ["step_block", "batch_inline", "priority_update"])
def test_arrays_cut_at_every_byte_or_too_long_are_refused(tag: str) -> None:
    frames = example_frames(tag)

    for index in range(1, len(frames)):
        whole = frames[index]
        for part in [*(whole[:end] for end in range(len(whole))), bytes(whole) + b"\0"]:
            assert reason_of([*frames[:index], part, *frames[index + 1 :]]) == "array_size"


def test_a_flipped_bit_in_an_array_is_noticed() -> None:
    frames = example_frames("step_block")
    damaged = bytearray(frames[1])
    damaged[40] ^= 4

    assert reason_of([frames[0], damaged, *frames[2:]]) == "checksum"


@pytest.mark.parametrize(
    "raw",
    [
        b"\x90" * (MAX_HEADER_BYTES - 4),
        b"\xdc\x04\x00" * (MAX_HEADER_BYTES // 3 - 2),
        b"\xdd\x00\x00\x04\x00" * (MAX_HEADER_BYTES // 5 - 1),
        b"\xdd\x00\x00\xea\x60" * (MAX_HEADER_BYTES // 5 - 1),
        b"\xdc\x04\x00" + b"\x80" * (MAX_HEADER_BYTES - 7),
        b"\x91" * (MAX_HEADER_BYTES - 4),
        b"\xdd\x7f\xff\xff\xff" * 1000,
    ],
)
def test_memory_stays_bounded_whatever_is_announced(raw: bytes) -> None:
    tracemalloc.start()
    try:
        assert reason_of([seal(raw)]) in {"msgpack", "header_fields"}
        assert reason_of([raw]) == "checksum"
        assert tracemalloc.get_traced_memory()[1] < MEMORY_LIMIT_BYTES
    finally:
        tracemalloc.stop()


def test_unpack_header_wants_exactly_the_keys() -> None:
    raw = seal(msgpack.packb({"a": 1}))

    assert unpack_header(raw, {"a"}) == {"a": 1}
    for keys in (set[Any](), {"b"}, {"a", "b"}):
        with pytest.raises(BadMessage, match="header_fields"):
            unpack_header(raw, keys)


@pytest.mark.parametrize("tag", sorted(MESSAGES))
def test_headers_fit_their_limit_with_room(tag: str) -> None:
    assert len(example_frames(tag)[0]) < MAX_HEADER_BYTES // 10


def test_frames_may_be_any_buffer() -> None:
    (frame,) = encode(Ping(incarnation=5, question=1))

    for kind in (bytes, bytearray, memoryview):
        assert decode([kind(frame)]).message == Ping(incarnation=5, question=1)
