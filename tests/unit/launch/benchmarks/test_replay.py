from __future__ import annotations

import pytest
import torch

from common.batch import Batch
from common.replay_capacity import ItemLayout, memory_bytes
from common.specs import DataSpec
from launch.benchmarks import buffer_calls
from launch.benchmarks.blocks import BLOCK_ITEMS
from launch.benchmarks.buffer_calls import (
    SPARE_BYTES,
    bench_calls,
    bench_capacities,
    buffer_bytes,
    full_buffer,
    layout_rows,
)
from launch.benchmarks.measure import measure
from launch.benchmarks.replay import ASKED_STEPS, rate_rows
from launch.benchmarks.replay_plan import ReplayPlan
from launch.benchmarks.sender import written_bytes

SPEC = DataSpec(height=8, width=8, stack=2, num_actions=3, n_step=2)


def test_rates_are_compared_with_plain_sockets_of_their_direction() -> None:
    values = {
        "steps in: raw": [400.0, 400.0],
        "steps in: server": [90.0, 110.0],
        "samples out: raw": [50.0, 50.0],
        "samples out: shared": [150.0, 250.0],
    }

    rows = {row.contender: row for row in rate_rows(values, {}, 1_000.0)}

    assert rows["steps in: server"].ratio == pytest.approx(0.25)
    assert rows["samples out: shared"].ratio == pytest.approx(4.0)
    assert rows["steps in: server"].unit == "agent step/s"
    assert rows["samples out: shared"].unit == "sample/s"


def test_steps_that_come_in_beside_samples_are_compared_with_what_was_asked_for() -> None:
    values = {"steps in: raw": [400.0]}
    beside = {"steps in: while samples go out, wire": [900.0, 700.0]}

    rows = {row.contender: row for row in rate_rows(values, beside, 1_000.0)}

    assert rows[ASKED_STEPS].median == 1_000.0
    assert rows["steps in: while samples go out, wire"].median == 800.0
    assert rows["steps in: while samples go out, wire"].ratio == pytest.approx(0.8)


def test_a_full_buffer_has_written_every_frame_that_can_be_drawn() -> None:
    capacity = 3 * BLOCK_ITEMS

    buffer = full_buffer(SPEC, capacity)

    assert capacity - BLOCK_ITEMS <= buffer.size <= capacity
    drawn = buffer.sample(256, 0.4).observations
    # Random pixels: a frame that was never written would be all zeros.
    assert (drawn.flatten(2) > 0).any(dim=2).all()


def test_the_memory_of_a_buffer_is_known_before_it_is_made() -> None:
    capacity = 4 * BLOCK_ITEMS
    buffer = full_buffer(SPEC, capacity)

    frames = buffer.storage.frames
    assert frames.nbytes < buffer_bytes(SPEC, capacity) < 1.5 * frames.nbytes


def test_a_draw_is_measured_out_of_each_capacity_that_fits() -> None:
    capacities = (2 * BLOCK_ITEMS, 4 * BLOCK_ITEMS)

    bench = bench_capacities(SPEC, capacities, batch_size=16)
    rows = measure(bench, rounds=3).rows

    assert [row.contender for row in rows] == [
        f"draw 16 samples with frames out of {capacity}" for capacity in capacities
    ]
    assert rows[0].ratio == 1.0
    assert all(row.median > 0 for row in rows)
    assert bench.notes == ()


def test_every_draw_is_out_of_a_buffer_of_its_own_capacity() -> None:
    capacities = (8 * BLOCK_ITEMS, 32 * BLOCK_ITEMS)
    bench = bench_capacities(SPEC, capacities, batch_size=64)

    for capacity, contender in zip(capacities, bench.contenders.values(), strict=True):
        batch = contender.work()
        assert isinstance(batch, Batch)
        assert capacity / 2 < int(batch.slots.max()) < capacity * 1.1


def test_a_capacity_that_does_not_fit_is_left_out_with_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, large = 2 * BLOCK_ITEMS, 200 * BLOCK_ITEMS
    free = buffer_bytes(SPEC, large) + SPARE_BYTES - 1
    monkeypatch.setattr(buffer_calls, "free_ram_bytes", lambda: free)

    bench = bench_capacities(SPEC, (small, large), batch_size=16)

    assert list(bench.contenders) == [f"draw 16 samples with frames out of {small}"]
    assert bench.notes == (
        f"a draw out of 25,600 is not measured: it needs {(free + 1) / 1e9:.1f} GB, "
        f"{free / 1e9:.1f} GB are free",
    )


def test_the_calls_of_a_server_do_what_their_names_say() -> None:
    bench = bench_calls(SPEC, 4 * BLOCK_ITEMS, batch_size=16)

    assert list(bench.contenders) == [
        "memcpy of the frames of 16 samples",
        "draw 16 samples",
        "set 16 priorities",
        f"insert a block of {BLOCK_ITEMS}",
    ]
    copied = bench.contenders["memcpy of the frames of 16 samples"].work()
    assert isinstance(copied, torch.Tensor)
    # Both stacks of each sample.
    assert copied.numel() == 16 * 2 * SPEC.stack * SPEC.frame_bytes
    assert (copied == 1).all()


def test_the_memory_of_a_transition_is_told_for_the_blocks_of_both_presets() -> None:
    capacity = 128_000
    told = {row.contender: row.median for row in layout_rows(DataSpec(), capacity)}

    larger, smaller = (told[f"memory per transition by layout, blocks of {n}"] for n in (128, 64))
    assert DataSpec().frame_bytes < larger < smaller
    layout = ItemLayout(spec=DataSpec(), block_items=64)
    assert smaller == memory_bytes(capacity, layout) / capacity


def test_senders_send_blocks_of_the_size_that_is_asked_for() -> None:
    assert ReplayPlan(block_steps=64).settings.actor.block_steps == 64
    assert ReplayPlan().settings.actor.block_steps == BLOCK_ITEMS


def test_a_plain_message_has_pages_of_its_own() -> None:
    message = written_bytes(10_000)

    assert len(message) == 10_000
    assert 0 not in message
