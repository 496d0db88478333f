"""Messages that a broken or hostile peer might send: valid ones with one thing wrong, and bytes."""

from __future__ import annotations

import math
import random
from typing import Any, Final

import msgpack

from common.messages import MESSAGES
from tests.message_factory import example_frames

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


class Mutator:
    """Draws one message after another; the same seed draws the same."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._frames = {tag: [bytes(f) for f in example_frames(tag)] for tag in MESSAGES}
        self._tags = sorted(self._frames)

    def message(self) -> list[bytes]:
        frames = list(self._frames[self._rng.choice(self._tags)])
        change = self._rng.choice(
            (self._change_field, self._damage, self._change_frames, self._raw, self._truncate)
        )
        return change(frames)

    def weights(self, frame: bytes) -> bytes:
        """Cut or changed, but not in the fields that say whose they are: those end an actor."""
        fields_end = frame.index(b"\xa1t")
        match self._rng.randrange(3):
            case 0:
                return frame[: self._rng.randrange(len(frame))]
            case 1:
                return frame[:fields_end] + self._bytes_changed(frame[fields_end:])
            case _:
                return self._bytes_changed(frame[:4]) + frame[4:]

    def subscription(self) -> bytes:
        """What a subscriber may say: the first byte decides whether it wants or leaves."""
        return self._rng.choice((b"\x00", b"\x01", b"\x02")) + self._rng.randbytes(32)

    def _change_field(self, frames: list[bytes]) -> list[bytes]:
        header = self._replaced(msgpack.unpackb(frames[0]))
        return [msgpack.packb(header), *frames[1:]]

    def _replaced(self, value: Any) -> Any:
        """A copy with one value, at any depth, replaced, removed or added."""
        rng = self._rng
        if isinstance(value, dict) and value and rng.random() < 0.8:
            key = rng.choice(list(value))
            if rng.random() < 0.1:
                return {name: one for name, one in value.items() if name != key}
            return {**value, key: self._replaced(value[key])}
        return rng.choice(HOSTILE)

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
        size = self._rng.randint(1, 4)
        return [self._rng.choice((*RAW, self._rng.randbytes(40))) for _ in range(size)]

    def _truncate(self, frames: list[bytes]) -> list[bytes]:
        header = frames[0]
        return [header[: self._rng.randrange(len(header))], *frames[1:]]
