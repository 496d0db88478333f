"""A part of the benchmark `replay`: the buffer inside the server, call by call, without sockets."""

from __future__ import annotations

from importlib import import_module

import torch

from common.batch import allocate_batch
from common.specs import DataSpec
from launch.benchmarks.blocks import BLOCK_ITEMS, random_block
from launch.benchmarks.measure import Bench, Contender


def bench_calls(spec: DataSpec, capacity: int, batch_size: int) -> Bench:
    """What the server does for a learner and for an actor, and the copy that it cannot avoid."""
    module = import_module("replay_server.buffer")
    buffer = module.ReplayBuffer(spec, module.ReplayOptions(capacity_items=capacity))
    block = random_block(spec)
    while buffer.size < capacity - BLOCK_ITEMS:
        buffer.insert(block)
    out, errors = allocate_batch(batch_size, spec), torch.rand(batch_size)
    # Ones: pages of zeros that were never written are read from one page in the cache.
    frames = torch.ones(batch_size * 2 * spec.stack, spec.frame_bytes, dtype=torch.uint8)
    copy = torch.empty_like(frames)

    def update() -> None:
        buffer.update_priorities(out.slots, out.generations, errors)

    works = {
        f"memcpy of the frames of {batch_size} samples": lambda: copy.copy_(frames),
        f"draw {batch_size} samples": lambda: buffer.sample(batch_size, 0.4, out=out),
        f"set {batch_size} priorities": update,
        f"insert a block of {BLOCK_ITEMS}": lambda: buffer.insert(block),
    }
    return Bench(contenders={name: Contender(work=work) for name, work in works.items()})
