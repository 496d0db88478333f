"""Batch slots in shared memory: the learner makes the file, the replay server gathers into it.

A slot belongs to the learner until a request names it and to the server until the reply. Plain
files in the memory file system are used because `multiprocessing.shared_memory` starts a tracker
process that unlinks what others still use.
"""

from __future__ import annotations

import math
import mmap
import os

import torch

from common.batch import Batch, batch_layout
from common.errors import BadMessage
from common.shared_files import hold_shared, shared_path
from common.specs import DataSpec

_ALIGNMENT = 64
MAX_SLOTS = 65
"""As many as a request can name (`SampleRequest.slot`)."""


def slot_bytes(batch_size: int, spec: DataSpec) -> int:
    return sum(_field_bytes(dtype, shape) for _, dtype, shape in batch_layout(batch_size, spec))


def _field_bytes(dtype: torch.dtype, shape: tuple[int, ...]) -> int:
    size = math.prod(shape) * dtype.itemsize
    return -(-size // _ALIGNMENT) * _ALIGNMENT


class SharedSlots:
    """K batches that live in one mapped file."""

    def __init__(self, memory: mmap.mmap, count: int, batch_size: int, spec: DataSpec) -> None:
        size = slot_bytes(batch_size, spec)
        self._memory = memory
        self.batches = tuple(
            _map_batch(memory, index * size, batch_size, spec) for index in range(count)
        )

    @classmethod
    def create(cls, name: str, count: int, batch_size: int, spec: DataSpec) -> SharedSlots:
        """Make the file; only this user can open it."""
        path = shared_path(name)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            hold_shared(file)
            os.posix_fallocate(file, 0, count * slot_bytes(batch_size, spec))
            return cls(mmap.mmap(file, 0), count, batch_size, spec)
        except BaseException:
            path.unlink()
            raise
        finally:
            os.close(file)

    @classmethod
    def attach(cls, name: str, batch_size: int, spec: DataSpec) -> SharedSlots:
        """Map a file that a peer named. The name comes off the wire, so it is not trusted."""
        try:
            file = os.open(shared_path(name), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            raise BadMessage("shared_file", str(error.strerror)) from error
        try:
            hold_shared(file)
            status = os.fstat(file)
            size = slot_bytes(batch_size, spec)
            if status.st_uid != os.getuid() or status.st_size < size:
                raise BadMessage("shared_file", "not ours, or too small")
            count = min(status.st_size // size, MAX_SLOTS)
            return cls(mmap.mmap(file, 0), count, batch_size, spec)
        except BlockingIOError as error:
            raise BadMessage("shared_file", "its maker is dead") from error
        finally:
            os.close(file)


def _map_batch(memory: mmap.mmap, offset: int, batch_size: int, spec: DataSpec) -> Batch:
    tensors = {}
    for name, dtype, shape in batch_layout(batch_size, spec):
        count = math.prod(shape)
        flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset)
        tensors[name] = flat.view(shape)
        offset += _field_bytes(dtype, shape)
    return Batch(**tensors)
