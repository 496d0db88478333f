"""Messages that a broken or hostile peer might send: valid ones with one thing wrong, and bytes."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgpack
import numpy as np

from common.codec import DTYPES, Array, encode, seal
from common.messages import MESSAGES, BlockMessage, Message
from common.transport import MAX_SUBSCRIPTION_BYTES
from tests.message_factory import EXAMPLES, example_arrays

Example = tuple[Message, Mapping[str, Array]]
HOSTILE: Final[tuple[Any, ...]] = (
    *(None, True, -1, 0, 2**63, 2**64 - 1, -(2**63), 1.5, math.nan, math.inf, -math.inf),
    *(
        "",
        "x" * 5_000,
        "../x",
        "<b>",
        "a\x00b",
        b"\xff" * 9,
        [],
        {},
        [[[[[[]]]]]],
        {"v": {"v": {}}},
    ),
)
LARGE: Final = (64, 1_000, 65_536, 1_000_000, 2**31, 2**62)
"""Within the range of one field or another: only who knows the run can refuse them."""
RAW: Final = (
    b"",
    b"\x90" * 70_000,
    b"\xdd\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xc9\xff\xff\xff\xff\x01",
    b"\xdf\xff\xff\xff\xff\xa1v",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"\x93" * 2_000,
)
CHECKSUM_BYTES: Final = 4
WEIGHTS_PREFIX: Final = 4
SEALED_SHARE: Final = 0.8
ARRAY_SHARE: Final = 0.8
LARGE_SHARE: Final = 0.15
HALF: Final = 0.5
EXTREMES: Final[Mapping[str, tuple[float, ...]]] = {
    "u": (0, 3, 7, 255),
    "i": (-1, 0, 2**62, -(2**63)),
    "f": (math.nan, math.inf, -math.inf, -1.0, 1e9),
}
"""By kind of array."""


def _frames(message: Message, arrays: Mapping[str, Array]) -> list[bytes]:
    return [bytes(frame) for frame in encode(message, arrays)]


def _unpacked(header: bytes) -> Any:
    return msgpack.unpackb(header[:-CHECKSUM_BYTES])


class Mutator:
    """Draws one message after another; the same seed draws the same."""

    def __init__(self, seed: int, examples: Sequence[Example] | None = None) -> None:
        """Of `examples`, else of one of every message."""
        self._rng = random.Random(seed)
        every = [(EXAMPLES[tag], example_arrays(tag)) for tag in sorted(MESSAGES)]
        self._examples = every if examples is None else list(examples)
        self._frames = [_frames(*example) for example in self._examples]
        self._drawn = 0

    def mixed(self) -> list[bytes]:
        """Mostly such as only their handler can refuse."""
        return self.sealed() if self._rng.random() < SEALED_SHARE else self.message()

    def sealed(self) -> list[bytes]:
        """One value is wrong, all checksums are right; a block has a number of its own."""
        message, arrays = self._rng.choice(self._examples)
        self._drawn += 1
        if isinstance(message, BlockMessage):
            message = replace(message, sequence=self._drawn)
        if arrays and self._rng.random() < ARRAY_SHARE:
            return self.array_damaged(message, arrays)
        header, *rest = _frames(message, arrays)
        content = _unpacked(header)
        content["f"] = self._replaced(content["f"])
        return [seal(msgpack.packb(content)), *rest]

    def message(self) -> list[bytes]:
        frames = list(self._rng.choice(self._frames))
        change = self._rng.choice(
            (self._change_field, self._damage, self._change_frames, self._raw, self._truncate)
        )
        return change(frames)

    def array_damaged(self, message: Message, arrays: Mapping[str, Array]) -> list[bytes]:
        """One array has another shape, type or value; all checksums are right."""
        name = self._rng.choice(list(arrays))
        return _frames(message, {**arrays, name: self._array_changed(arrays[name])})

    def weights(self, frame: bytes) -> bytes:
        """Cut, changed, or sealed with other rows; whose they are is not: that ends an actor."""
        while (damaged := self._weights_once(frame)) == frame:
            pass
        return damaged

    def _weights_once(self, frame: bytes) -> bytes:
        match self._rng.randrange(4):
            case 0:
                return frame[: self._rng.randrange(len(frame))]
            case 1:
                return self._bytes_changed(frame)
            case 2:
                return self._bytes_changed(frame[:WEIGHTS_PREFIX]) + frame[WEIGHTS_PREFIX:]
            case _:
                return self._rows_changed(frame)

    def _rows_changed(self, frame: bytes) -> bytes:
        end = WEIGHTS_PREFIX + int.from_bytes(frame[:WEIGHTS_PREFIX], "little")
        content = _unpacked(frame[WEIGHTS_PREFIX:end])
        key = self._rng.choice("th")
        content[key] = self._replaced(content[key])
        header = seal(msgpack.packb(content))
        return len(header).to_bytes(WEIGHTS_PREFIX, "little") + header + frame[end:]

    def subscription(self) -> bytes:
        """What a subscriber may say: the first byte decides whether it wants or leaves."""
        length = self._rng.choice((32, MAX_SUBSCRIPTION_BYTES - 1))
        return self._rng.choice((b"\x00", b"\x01", b"\x02")) + self._rng.randbytes(length)

    def _array_changed(self, array: Array) -> Array:
        match self._rng.randrange(6):
            case 0:
                return np.concatenate([array, array[:1]])
            case 1:
                return array[:-1] if len(array) > 1 else array[np.newaxis]
            case 2:
                return array[np.newaxis]
            case 3:
                others = [kind for kind in DTYPES.values() if kind != array.dtype]
                return np.zeros(array.shape, self._rng.choice(others))
            case _:
                return self._values_changed(array)

    def _values_changed(self, array: Array) -> Array:
        changed = array.copy()
        for _ in range(self._rng.randint(1, 4)):
            index = self._rng.randrange(changed.size)
            changed.reshape(-1)[index] = self._rng.choice(EXTREMES[changed.dtype.kind])
        return changed

    def _change_field(self, frames: list[bytes]) -> list[bytes]:
        header = self._replaced(_unpacked(frames[0]))
        return [seal(msgpack.packb(header)), *frames[1:]]

    def _replaced(self, value: Any) -> Any:
        """A copy with one value, at any depth, replaced, removed or added."""
        rng = self._rng
        if isinstance(value, dict) and value and rng.random() < 0.8:
            key = rng.choice(list(value))
            if rng.random() < 0.1:
                return {name: one for name, one in value.items() if name != key}
            # A number far ahead is taken, and all blocks after it are too old to be looked at.
            other = rng.choice(HOSTILE) if key == "sequence" else self._replaced(value[key])
            return {**value, key: other}
        if isinstance(value, list) and value and rng.random() < 0.8:
            index = rng.randrange(len(value))
            return [*value[:index], self._replaced(value[index]), *value[index + 1 :]]
        is_number = type(value) is int and rng.random() < LARGE_SHARE
        return rng.choice(LARGE if is_number else HOSTILE)

    def _damage(self, frames: list[bytes]) -> list[bytes]:
        index = self._rng.randrange(len(frames))
        return [*frames[:index], self._bytes_changed(frames[index]), *frames[index + 1 :]]

    def _bytes_changed(self, data: bytes) -> bytes:
        changed = bytearray(data or b"\x00")
        for _ in range(self._rng.randint(1, 4)):
            changed[self._rng.randrange(len(changed))] = self._rng.randrange(256)
        return bytes(changed)

    def _change_frames(self, frames: list[bytes]) -> list[bytes]:
        match self._rng.randrange(4):
            case 0:
                return frames[:-1] or [b""]
            case 1:
                return [*frames, b"more"]
            case 2:
                return [*frames, *[b""] * 100]
            case _:
                return [frames[-1], *frames[:-1]]

    def _raw(self, frames: list[bytes]) -> list[bytes]:
        del frames
        first, *rest = (
            self._rng.choice((*RAW, self._rng.randbytes(40)))
            for _ in range(self._rng.randint(1, 4))
        )
        return [seal(first) if self._rng.random() < HALF else first, *rest]

    def _truncate(self, frames: list[bytes]) -> list[bytes]:
        index = self._rng.randrange(len(frames))
        cut = frames[index][: self._rng.randrange(len(frames[index]))]
        return [*frames[:index], cut, *frames[index + 1 :]]
