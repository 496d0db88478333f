"""Weights on the wire: one frame with a header and all tensors, versioned and hashed.

Layout: 4 bytes little-endian header length, msgpack header with its checksum behind it, all tensors
back to back in header order.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated

import msgpack
import numpy as np
from torch import Tensor

from common.codec import Buffer, seal, unpack_header
from common.config import Settings
from common.controls import PlayControls
from common.errors import BadMessage
from common.field_checks import check_fields
from common.messages import (
    MAX_HEADER_BYTES,
    PROTOCOL_VERSION,
    Count,
    Range,
    Record,
    RunName,
    Text,
)
from common.specs import MAX_QUANTILES, DataSpec

_LENGTH = struct.Struct("<I")
_HEADER_KEYS = frozenset({"f", "t", "h"})
_FLOAT_BYTES = 4
_FLOATS = np.dtype("<f4")
TensorRow = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightContract:
    """What the learner and an actor must agree on before weights can be used."""

    run_id: str
    network: str
    num_quantiles: int
    spec: DataSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightHeader:
    """What actors need to know besides the tensors."""

    protocol: Count = PROTOCOL_VERSION
    run_id: RunName
    generation: Count
    """New at every start of the learner; a higher generation wins whatever its version."""
    version: Count
    """Updates that made these weights."""
    agent_steps: Count
    """Agent steps of the whole run so far, for schedules on the actors."""
    stage_shares: Record
    """How often each stage is to be played; they add up to 1."""
    controls: PlayControls = field(default_factory=PlayControls)
    """What the learner asks of the actors while they play."""
    network: Annotated[str, Text(32)]
    num_quantiles: Annotated[int, Range(1, MAX_QUANTILES)]
    spec: DataSpec

    @property
    def contract(self) -> WeightContract:
        return WeightContract(
            run_id=self.run_id,
            network=self.network,
            num_quantiles=self.num_quantiles,
            spec=self.spec,
        )

    @property
    def order(self) -> tuple[int, int, int, int]:
        """Newest wins: compare this."""
        return (self.generation, self.version, self.agent_steps, self.controls.revision)


def weight_contract(settings: Settings) -> WeightContract:
    return WeightContract(
        run_id=settings.run.run,
        network=settings.learner.network,
        num_quantiles=settings.learner.num_quantiles,
        spec=settings.spec,
    )


def encode_weights(header: WeightHeader, tensors: Mapping[str, Tensor]) -> bytes:
    """One frame. Done once per version, whatever the number of actors."""
    arrays = {name: t.detach().cpu().contiguous().numpy() for name, t in tensors.items()}
    body = [array.reshape(-1).view(np.uint8).data for array in arrays.values()]
    digest = hashlib.sha256()
    for piece in body:
        digest.update(piece)
    packed = msgpack.packb(
        {
            "f": asdict(header),
            "t": [[name, list(array.shape)] for name, array in arrays.items()],
            "h": digest.hexdigest(),
        }
    )
    sealed = seal(packed)
    return b"".join((_LENGTH.pack(len(sealed)), sealed, *body))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WeightFrame:
    """A frame whose header has been checked and whose tensors nobody has looked at yet.

    So an old version can be dropped unread, and a new one costs an actor one look at the header.
    """

    header: WeightHeader
    rows: Sequence[TensorRow]
    digest: object
    body: memoryview

    def load_into(self, targets: Mapping[str, Tensor]) -> None:
        """Copy the tensors into those of the same names, all or nothing.

        Straight from the frame: actors do this while they should be playing.
        """
        if [name for name, _ in self.rows] != list(targets):
            raise BadMessage("weight_names")
        for name, shape in self.rows:
            expected = tuple(targets[name].shape)
            if shape != expected:
                raise BadMessage("weight_shape", f"{name}: expected {expected}, got {shape}")
        size = _FLOAT_BYTES * sum(math.prod(shape) for _, shape in self.rows)
        if size != len(self.body):
            raise BadMessage("weight_size", f"expected {size} bytes, got {len(self.body)}")
        if hashlib.sha256(self.body).hexdigest() != self.digest:
            raise BadMessage("weight_hash")
        _copy(self.rows, self.body, targets)


def open_weights(frame: Buffer) -> WeightFrame:
    view = memoryview(frame)
    if len(view) < _LENGTH.size:
        raise BadMessage("weight_size", "no header")
    (length,) = _LENGTH.unpack(view[: _LENGTH.size])
    if length > MAX_HEADER_BYTES or _LENGTH.size + length > len(view):
        raise BadMessage("header_size", f"{length} bytes")
    packed = unpack_header(view[_LENGTH.size : _LENGTH.size + length], _HEADER_KEYS)
    header = WeightHeader(**check_fields(WeightHeader, packed["f"]))
    if header.protocol != PROTOCOL_VERSION:
        raise BadMessage("protocol", f"expected version {PROTOCOL_VERSION}")
    return WeightFrame(
        header=header,
        rows=_checked_rows(packed["t"]),
        digest=packed["h"],
        body=view[_LENGTH.size + length :],
    )


def _copy(rows: Sequence[TensorRow], body: memoryview, targets: Mapping[str, Tensor]) -> None:
    offset = 0
    for name, shape in rows:
        size = _FLOAT_BYTES * math.prod(shape)
        array = np.frombuffer(body[offset : offset + size], dtype=_FLOATS)
        # Through NumPy: torch would complain that the frame cannot be written to.
        np.copyto(targets[name].detach().numpy(), array.reshape(shape))
        offset += size


def _checked_rows(rows: object) -> list[TensorRow]:
    if not isinstance(rows, list):
        raise BadMessage("weight_rows")
    return [_checked_row(row) for row in rows]


def _checked_row(row: object) -> TensorRow:
    match row:
        case [str() as name, list() as shape] if all(type(side) is int for side in shape):
            return name, tuple(shape)
    raise BadMessage("weight_rows")
