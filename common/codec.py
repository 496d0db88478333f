"""Messages to frames and back: a small msgpack header, then raw arrays. Never pickle.

The header ends with a checksum of itself, so that nothing of a damaged one is believed; its rows
have those of the arrays. Everything is checked before anything proportional to a peer's number is
allocated; whatever is wrong raises `BadMessage` with a short reason that the receiver counts.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from typing import Any

import msgpack
import numpy as np
import numpy.typing as npt

from common.errors import BadMessage
from common.field_checks import check_fields, field_checkers
from common.messages import (
    MAX_ARRAYS,
    MAX_FRAME_BYTES,
    MAX_HEADER_BYTES,
    MESSAGES,
    PROTOCOL_VERSION,
    Message,
)
from common.specs import DataSpec

Buffer = bytes | bytearray | memoryview
Array = npt.NDArray[Any]

DTYPES = {"u1": np.uint8, "u2": np.uint16, "i8": np.int64, "f4": np.float32}
"""Little-endian types that may cross the wire; anything else is refused."""
DTYPE_CODES = {np.dtype(kind).str: code for code, kind in DTYPES.items()}
"""By NumPy's word for the type: a type itself takes long to look up."""
MAX_DIMENSIONS = 4
LAST_UNSEALED_VERSION = 3
"""Headers of this version and older ones had no checksum."""
_HEADER_KEYS = frozenset({"v", "t", "f", "a"})
_CHECKSUM = struct.Struct("<I")


@dataclass(frozen=True, slots=True, eq=False)
class Received:
    """A decoded message; its arrays are read-only views of the received frames."""

    message: Message
    arrays: dict[str, Array] = field(default_factory=dict)


def encode(message: Message, arrays: Mapping[str, Array] | None = None) -> list[Buffer]:
    """Header frame and array frames. The arrays are not copied: keep them until they are sent."""
    kind: type = type(message)
    ordered = [np.ascontiguousarray((arrays or {})[name]) for name in message.arrays]
    views: list[Buffer] = [array.data.cast("B") for array in ordered]
    header = {
        "v": PROTOCOL_VERSION,
        "t": message.tag,
        "f": {name: _plain(getattr(message, name)) for name in field_checkers(kind)},
        "a": [
            [DTYPE_CODES[array.dtype.str], list(array.shape), zlib.crc32(view)]
            for array, view in zip(ordered, views, strict=True)
        ],
    }
    return [seal(msgpack.packb(header)), *views]


def _plain(value: object) -> object:
    """Most fields are numbers and words, which a copy of the whole message would copy too."""
    return asdict(value) if isinstance(value, DataSpec) else value


def decode(frames: Sequence[Buffer]) -> Received:
    """The message in these frames, or `BadMessage`."""
    if not 1 <= len(frames) <= MAX_ARRAYS + 1:
        raise BadMessage("frame_count", f"got {len(frames)} frames")
    header = _open_header(frames[0])
    version = header["v"]
    if type(version) is not int:
        raise BadMessage("header_fields", "the version is not a number")
    if version != PROTOCOL_VERSION:
        raise BadMessage("protocol", f"we speak version {PROTOCOL_VERSION}, the peer {version}")
    tag = header["t"]
    kind = MESSAGES.get(tag) if isinstance(tag, str) else None
    if kind is None:
        raise BadMessage("unknown_message")
    arrays = _decode_arrays(kind.arrays, header["a"], frames[1:])
    return Received(kind(**check_fields(kind, header["f"])), arrays)


def seal(packed: bytes) -> bytes:
    """A packed header with its checksum behind it."""
    return packed + _CHECKSUM.pack(zlib.crc32(packed))


def unpack_header(frame: Buffer, keys: Set[str]) -> dict[str, Any]:
    """A sealed map with exactly these keys; at most a few megabytes, whatever it announces."""
    if len(frame) > MAX_HEADER_BYTES:
        raise BadMessage("header_size", f"{len(frame)} bytes")
    packed, checksum = frame[: -_CHECKSUM.size], frame[-_CHECKSUM.size :]
    if checksum != _CHECKSUM.pack(zlib.crc32(packed)):
        raise BadMessage("checksum", "the header")
    return _unpack_map(packed, keys)


def _open_header(frame: Buffer) -> dict[str, Any]:
    """Of a peer that does not know the checksum the version is wrong, so that it is refused."""
    try:
        return unpack_header(frame, _HEADER_KEYS)
    except BadMessage as error:
        if error.reason == "checksum" and (older := _unsealed(frame)) is not None:
            return older
        raise


def _unsealed(frame: Buffer) -> dict[str, Any] | None:
    """The header, if all of the frame is one of a version that had no checksum."""
    try:
        header = _unpack_map(frame, _HEADER_KEYS)
    except BadMessage:
        return None
    version = header["v"]
    return header if type(version) is int and 1 <= version <= LAST_UNSEALED_VERSION else None


def _unique_pairs(pairs: list[tuple[object, object]]) -> dict[object, object]:
    """Duplicate keys are refused: which of them wins would depend on the reader."""
    result = dict(pairs)
    if len(result) != len(pairs):
        raise BadMessage("duplicate_key")
    return result


def _unpack_map(packed: Buffer, keys: Set[str]) -> dict[str, Any]:
    try:
        header = msgpack.unpackb(
            packed,
            strict_map_key=True,
            object_pairs_hook=_unique_pairs,
            max_ext_len=0,
            max_bin_len=0,
            max_array_len=1024,
            max_map_len=1024,
        )
    except (ValueError, TypeError, RecursionError, OverflowError, msgpack.UnpackException) as error:
        raise BadMessage("msgpack", type(error).__name__) from error
    if not isinstance(header, dict) or header.keys() != keys:
        raise BadMessage("header_fields")
    return header


def _decode_arrays(
    names: tuple[str, ...], rows: object, frames: Sequence[Buffer]
) -> dict[str, Array]:
    if not isinstance(rows, list) or not len(rows) == len(names) == len(frames):
        raise BadMessage("array_count")
    return {
        name: _decode_array(name, row, frame)
        for name, row, frame in zip(names, rows, frames, strict=True)
    }


def _decode_array(name: str, row: object, frame: Buffer) -> Array:
    if not isinstance(row, list) or len(row) != 3:  # noqa: PLR2004 - dtype, shape, checksum
        raise BadMessage("array_row", name)
    code, shape, checksum = row
    if not isinstance(code, str) or code not in DTYPES:
        raise BadMessage("array_dtype", name)
    if not _is_shape(shape):
        raise BadMessage("array_shape", name)
    dtype = np.dtype(DTYPES[code])
    size = math.prod(shape) * dtype.itemsize
    if size != len(frame) or size > MAX_FRAME_BYTES:
        raise BadMessage("array_size", f"{name}: announced {size}, got {len(frame)} bytes")
    if zlib.crc32(frame) != checksum:
        raise BadMessage("checksum", name)
    return np.frombuffer(frame, dtype=dtype).reshape(shape)


def _is_shape(shape: object) -> bool:
    return (
        isinstance(shape, list)
        and 1 <= len(shape) <= MAX_DIMENSIONS
        # Nothing is sent as an empty array, and NumPy refuses some shapes with a zero in them.
        and all(type(side) is int and 1 <= side <= MAX_FRAME_BYTES for side in shape)
    )
