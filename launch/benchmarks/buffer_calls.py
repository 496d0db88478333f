"""A part of the benchmark `replay`: the buffer inside the server, call by call, without sockets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import torch

from common.batch import allocate_batch
from common.free_memory import free_ram_bytes
from common.replay_capacity import ItemLayout, memory_bytes
from common.specs import DataSpec
from launch.benchmarks.blocks import BLOCK_ITEMS, random_block
from launch.benchmarks.measure import Bench, Contender, Row, figure

BETA = 0.4
LAYOUT_BLOCK_ITEMS = (BLOCK_ITEMS, 64)
"""The default, and the blocks of the preset `laptop`."""
SPARE_BYTES = 1 << 30
"""Left to everything else on this machine."""


def bench_calls(spec: DataSpec, capacity: int, batch_size: int) -> Bench:
    """What the server does for a learner and for an actor, and the copy that it cannot avoid."""
    buffer = full_buffer(spec, capacity)
    block = random_block(spec)
    out, errors = allocate_batch(batch_size, spec), torch.rand(batch_size)
    # Ones: pages of zeros that were never written are read from one page in the cache.
    frames = torch.ones(batch_size * 2 * spec.stack, spec.frame_bytes, dtype=torch.uint8)
    copy = torch.empty_like(frames)

    def update() -> None:
        buffer.update_priorities(out.slots, out.generations, errors)

    works = {
        f"memcpy of the frames of {batch_size} samples": lambda: copy.copy_(frames),
        f"draw {batch_size} samples": lambda: buffer.sample(batch_size, BETA, out=out),
        f"set {batch_size} priorities": update,
        f"insert a block of {BLOCK_ITEMS}": lambda: buffer.insert(block),
    }
    return Bench(contenders={name: Contender(work=work) for name, work in works.items()})


def bench_capacities(spec: DataSpec, capacities: Sequence[int], batch_size: int) -> Bench:
    """What a larger buffer costs a draw with its frames: fewer of them are in a cache.

    All of them are in memory at once, to take turns; those that do not fit are left out.
    """
    out = allocate_batch(batch_size, spec)
    contenders, notes = {}, []
    for capacity in capacities:
        needed, free = buffer_bytes(spec, capacity) + SPARE_BYTES, free_ram_bytes()
        if needed > free:
            gigabytes = f"needs {needed / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"
            notes.append(f"a draw out of {capacity:,} is not measured: it {gigabytes}")
            continue
        draw = partial(full_buffer(spec, capacity).sample, batch_size, BETA, out=out)
        name = f"draw {batch_size} samples with frames out of {capacity:,}"
        contenders[name] = Contender(work=draw, group="capacity")
    # As in `per`, of which a draw is a part.
    return Bench(contenders=contenders, notes=tuple(notes), clock=time.thread_time)


def full_buffer(spec: DataSpec, capacity: int) -> Any:
    """Every frame is written: what never was would be read from one page of zeros."""
    module = import_module("replay_server.buffer")
    buffer = module.ReplayBuffer(spec, module.ReplayOptions(capacity_items=capacity))
    block = random_block(spec)
    while buffer.size < capacity - BLOCK_ITEMS:
        buffer.insert(block)
    return buffer


def layout_rows(spec: DataSpec, capacity: int) -> list[Row]:
    """What the arrays of a full buffer take for each transition; smaller blocks waste more."""
    return [
        figure(
            f"memory per transition by layout, blocks of {items}",
            [memory_bytes(capacity, ItemLayout(spec=spec, block_items=items)) / capacity],
            "byte",
        )
        for items in LAYOUT_BLOCK_ITEMS
    ]


def buffer_bytes(spec: DataSpec, capacity: int) -> int:
    return memory_bytes(capacity, ItemLayout(spec=spec, block_items=BLOCK_ITEMS))
