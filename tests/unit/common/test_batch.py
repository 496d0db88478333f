from __future__ import annotations

import torch

from common.batch import Batch, allocate_batch, batch_layout
from common.codec import DTYPE_CODES
from common.messages import InlineBatchReply
from common.specs import DataSpec

SPEC = DataSpec(height=2, width=3, stack=4)


def test_fields_layout_and_wire_have_one_order() -> None:
    names = tuple(name for name, _, _ in batch_layout(5, SPEC))

    assert names == tuple(Batch.__slots__) == InlineBatchReply.arrays


def test_allocated_batches_have_the_layout() -> None:
    batch = allocate_batch(5, SPEC)

    assert batch.size == 5
    for name, dtype, shape in batch_layout(5, SPEC):
        tensor = getattr(batch, name)
        assert (tensor.dtype, tuple(tensor.shape)) == (dtype, shape)


def test_every_type_of_a_batch_may_cross_the_wire() -> None:
    for _, dtype, _ in batch_layout(1, SPEC):
        assert torch.empty(1, dtype=dtype).numpy().dtype.str in DTYPE_CODES
