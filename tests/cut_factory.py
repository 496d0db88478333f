"""Small replay buffers, filled and cut, for tests of what is saved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from common.blocks import StepBlock
from common.checkpoint_files import STATE_NAME, encode_json, load_state, write_files
from common.ids import Incarnation
from common.replay_sizes import BYTE_COLUMNS
from common.saved_replay import CUT_FILES, TENSORS_NAME, cuts_folder, page_path
from replay_server.buffer import ReplayBuffer, ReplayOptions
from replay_server.cut import FIRST_BYTE_COLUMNS, Cut, take_cut
from replay_server.ledger import Ledger
from replay_server.rate_limit import RateLimiter, RatioLimit, StrideSizes
from tests.block_factory import TINY, cut_block, random_play

CAPACITY, BLOCK_ITEMS = 96, 16


def make_buffer(capacity: int = CAPACITY) -> ReplayBuffer:
    options = ReplayOptions(capacity_items=capacity, block_items=BLOCK_ITEMS, seed=5)
    return ReplayBuffer(TINY, options)


def block(seed: int) -> StepBlock:
    steps = random_play(BLOCK_ITEMS + TINY.n_step, TINY, np.random.default_rng(seed))
    return cut_block(steps, 0, BLOCK_ITEMS, TINY)


def fill(buffer: ReplayBuffer, blocks: range) -> None:
    for seed in blocks:
        buffer.insert(block(seed))


def cut_of(buffer: ReplayBuffer, agent_steps: int) -> Cut:
    sizes = StrideSizes(capacity_items=CAPACITY, block_items=BLOCK_ITEMS, batch_samples=8)
    limit = RatioLimit(samples_per_insert=4.0, min_inserted=1, slack_samples=1_000.0)
    limiter, ledger = RateLimiter(limit, sizes), Ledger()
    limiter.add_inserted(70)
    limiter.add_sampled(33)
    for sequence in (0, 1, 4):
        ledger.accept("actor-0", Incarnation(7), sequence)
    return take_cut(agent_steps, buffer, limiter, ledger)


def use(buffer: ReplayBuffer, rounds: int) -> list[torch.Tensor]:
    """Sample, learn, insert: what comes out tells whether two buffers are the same."""
    seen = []
    for index in range(rounds):
        batch = buffer.sample(8, beta=0.5)
        seen += [batch.observations.clone(), batch.returns.clone(), batch.slots.clone()]
        buffer.update_priorities(batch.slots, batch.generations, torch.arange(8.0) + index)
        buffer.insert(block(1_000 + index))
    return seen


def change_state(root: Path, name: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Write a cut anew with another state."""
    folder = cuts_folder(root) / name
    state: dict[str, Any] = dict(load_state(folder, CUT_FILES))
    change(state)
    tensors = (folder / TENSORS_NAME).read_bytes()
    for file in folder.iterdir():
        file.unlink()
    write_files(folder, {STATE_NAME: encode_json(state), TENSORS_NAME: tensors}, int(name))


def make_older(root: Path, name: str) -> None:
    """As it was written before scripted steps were marked: a byte less in every row."""

    def forget_marks(state: dict[str, Any]) -> None:
        del state["shape"]["bytes"]
        for page in state["pages"]:
            path, steps = page_path(root, page["name"]), page["stretch"]["steps"]
            data = path.read_bytes()
            row_bytes = steps * len(BYTE_COLUMNS)
            rows = np.frombuffer(data[:row_bytes], dtype=np.uint8).reshape(steps, -1)
            path.write_bytes(rows[:, :FIRST_BYTE_COLUMNS].tobytes() + data[row_bytes:])
            del page["byte_columns"]
            page["size_bytes"] = path.stat().st_size
            page["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()

    change_state(root, name, forget_marks)
