"""The learner's slots as another process sees them."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from common.shared_files import shared_path
from common.shared_slots import SharedSlots
from common.specs import DataSpec

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parent.parent.parent
SPEC = DataSpec(height=3, width=5, stack=2)
SERVER = """
import sys
from common.shared_slots import SharedSlots
from common.specs import DataSpec
slots = SharedSlots.attach(sys.argv[1], 4, DataSpec(height=3, width=5, stack=2))
assert slots.batches[0].observations.sum() == 0
assert slots.batches[1].returns.tolist() == [0.5] * 4
slots.batches[0].observations.fill_(200)
slots.batches[2].generations.copy_(slots.batches[1].actions + 1)
"""


@pytest.fixture
def name() -> Iterator[str]:
    name = f"warpzone-test-{uuid.uuid4().hex}"
    yield name
    shared_path(name).unlink(missing_ok=True)


def test_two_processes_read_and_write_the_same_batches(name: str) -> None:
    slots = SharedSlots.create(name, 3, 4, SPEC)
    slots.batches[1].returns.fill_(0.5)
    slots.batches[1].actions.copy_(torch.arange(4) * 10)

    subprocess.run(
        [sys.executable, "-c", SERVER, name],
        check=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    assert slots.batches[0].observations.float().mean() == 200
    assert slots.batches[2].generations.tolist() == [1, 11, 21, 31]
    assert shared_path(name).exists(), "a process that ends must not unlink what others use"
