from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from common.batch import Batch, allocate_batch
from common.blocks import F32, FLAG_TERMINATED, FLAG_TRUNCATED
from common.errors import ConfigError
from common.replay_sizes import RingSizes
from common.specs import DataSpec
from launch.benchmarks.kernels import count_operations
from replay_server.buffer import ReplayBuffer, ReplayOptions
from replay_server.sampler import (
    discount_powers,
    importance_weights,
    n_step_windows,
    stack_frame_slots,
)
from replay_server.storage import BlockStorage
from tests.block_factory import (
    TINY,
    PlayedStep,
    cut_block,
    cut_blocks,
    frame_identity,
    play,
    random_play,
)
from tests.replay_reference import expected_sample

GAMMA = 0.9
Floats = npt.NDArray[np.float64]


def buffer_of(capacity: int, block_items: int, spec: DataSpec = TINY) -> ReplayBuffer:
    options = ReplayOptions(
        capacity_items=capacity, block_items=block_items, discount=GAMMA, seed=7
    )
    return ReplayBuffer(spec, options)


def index_of(steps: list[PlayedStep]) -> dict[tuple[int, int], int]:
    return {(step.episode, step.time): index for index, step in enumerate(steps)}


def assert_matches_reference(batch: Batch, steps: list[PlayedStep], spec: DataSpec) -> set[int]:
    """Each sample is recognised by its newest frame; returns the drawn positions in the play."""
    positions = index_of(steps)
    drawn = set()
    for row in range(batch.size):
        stack = [frame_identity(frame) for frame in batch.observations[row].numpy()]
        index = positions[stack[-1]]
        expected = expected_sample(steps, index, spec, GAMMA)
        next_stack = [frame_identity(frame) for frame in batch.next_observations[row].numpy()]
        assert stack == expected.stack
        assert next_stack == expected.next_stack
        assert int(batch.actions[row]) == expected.action
        assert int(batch.prev_actions[row]) == expected.prev_action
        assert int(batch.next_prev_actions[row]) == expected.next_prev_action
        assert float(batch.returns[row]) == pytest.approx(expected.reward_sum, abs=1e-4)
        assert float(batch.discounts[row]) == pytest.approx(expected.discount, rel=1e-6)
        drawn.add(index)
    return drawn


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    block_items=st.integers(1, 16),
    stack=st.integers(1, 5),
    n_step=st.integers(1, 9),
)
def test_samples_equal_the_slow_reference_after_wraps(
    seed: int, block_items: int, stack: int, n_step: int
) -> None:
    spec = DataSpec(height=2, width=4, stack=stack, num_actions=7, n_step=n_step)
    steps = random_play(150, spec, np.random.default_rng(seed))
    blocks = cut_blocks(steps, block_items, spec)
    buffer = buffer_of(40, block_items, spec)
    for block in blocks:
        buffer.insert(block)

    drawn = assert_matches_reference(buffer.sample(64, 0.4), steps, spec)

    newest = len(blocks) * block_items
    assert drawn <= set(range(newest - buffer.size, newest))


@pytest.mark.parametrize("flag", [FLAG_TERMINATED, FLAG_TRUNCATED])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 12])
def test_every_item_before_an_episode_end_has_the_right_tail(length: int, flag: int) -> None:
    steps = play([length, 30], [flag, 0], TINY, np.random.default_rng(length))
    buffer = buffer_of(16, 16)
    buffer.insert(cut_block(steps, 0, 16, TINY))

    drawn = assert_matches_reference(buffer.sample(64, 0.4), steps, TINY)

    assert drawn == set(range(16))


def test_stacks_are_right_deep_inside_a_long_episode() -> None:
    steps = play([700], [0], TINY, np.random.default_rng(0))
    buffer = buffer_of(600, 600)
    buffer.insert(cut_block(steps, 0, 600, TINY))

    drawn = assert_matches_reference(buffer.sample(600, 0.4), steps, TINY)

    # A count of older frames that is kept in one byte must not wrap at 256.
    assert {255, 256, 257, 512} <= drawn


def test_a_terminal_inside_the_window_stops_the_sum_and_the_bootstrap() -> None:
    steps = play([3, 30], [FLAG_TERMINATED, 0], TINY, np.random.default_rng(0))
    storage = BlockStorage(RingSizes(items=8, steps=12, frames=40), TINY)
    storage.insert(cut_block(steps, 0, 8, TINY))

    window = n_step_windows(storage.columns, torch.tensor([1]), discount_powers(0.5, 5))

    assert window.returns.tolist() == [steps[1].reward + 0.5 * steps[2].reward]
    assert window.discounts.tolist() == [0.0]
    assert window.last_slots.tolist() == [2]


def test_a_truncation_bootstraps_with_the_power_of_the_steps_summed() -> None:
    steps = play([3, 30], [FLAG_TRUNCATED, 0], TINY, np.random.default_rng(0))
    storage = BlockStorage(RingSizes(items=8, steps=12, frames=40), TINY)
    storage.insert(cut_block(steps, 0, 8, TINY))

    window = n_step_windows(storage.columns, torch.tensor([1, 2, 3]), discount_powers(0.5, 5))

    assert window.discounts.tolist() == [0.25, 0.5, 0.5**5]


def test_what_lies_behind_an_episode_end_cannot_spoil_the_sum() -> None:
    steps = play([3], [FLAG_TERMINATED], TINY, np.random.default_rng(0))
    storage = BlockStorage(RingSizes(items=8, steps=12, frames=40), TINY)
    storage.insert(cut_block(steps, 0, 3, TINY))
    storage.columns.rewards[3:] = torch.nan

    window = n_step_windows(storage.columns, torch.tensor([0]), discount_powers(GAMMA, 5))

    assert bool(torch.isfinite(window.returns).all())


def test_stacks_repeat_the_first_frame_and_wrap_around_the_ring() -> None:
    slots = stack_frame_slots(
        torch.tensor([5, 1, 10]), torch.tensor([1, 3, 3]), stack=4, num_frame_slots=10
    )

    assert slots.tolist() == [[4, 4, 4, 5], [8, 9, 0, 1], [7, 8, 9, 0]]


@settings(max_examples=30, deadline=None)
@given(
    priorities=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=40),
    beta=st.floats(0, 1),
    total=st.floats(1e4, 1e6),
)
def test_importance_weights_equal_the_formula(
    priorities: list[float], beta: float, total: float
) -> None:
    num_items = 1_000
    raw = [(num_items * priority / total) ** -beta for priority in priorities]
    expected = [weight / max(raw) for weight in raw]

    weights = importance_weights(torch.tensor(priorities, dtype=torch.float64), beta)

    np.testing.assert_allclose(weights.numpy(), expected, rtol=1e-5)
    assert float(weights.max()) == 1.0


def test_a_least_priority_that_is_known_is_not_looked_for_again() -> None:
    priorities = torch.rand(32, dtype=torch.float64) + 0.1
    least = priorities.min()

    assert torch.equal(
        importance_weights(priorities, 0.4, least), importance_weights(priorities, 0.4)
    )
    assert count_operations(lambda: importance_weights(priorities, 0.4, least)) == (
        count_operations(lambda: importance_weights(priorities, 0.4)) - 1
    )


def filled_with_priorities(errors: F32) -> ReplayBuffer:
    steps = play([len(errors) + 10], [0], TINY, np.random.default_rng(0))
    block = cut_block(steps, 0, len(errors), TINY)
    block.priorities[:] = errors
    buffer = buffer_of(len(errors), len(errors))
    buffer.insert(block)
    return buffer


def test_draws_follow_the_priorities_as_numpy_draws_do() -> None:
    errors = np.random.default_rng(1).gamma(0.5, 2.0, 200).astype(np.float32)
    mass = (errors.astype(np.float64) + 1e-3) ** 0.5
    expected = mass / mass.sum()
    buffer = filled_with_priorities(errors)
    num_draws = 60 * 512
    counts = np.zeros(200)
    for _ in range(60):
        counts += np.bincount(buffer.sample(512, 0.4).slots.numpy(), minlength=200)
    reference = np.random.default_rng(2).choice(200, num_draws, p=expected)

    chi_square, divergence = _distance(counts, expected)
    _, reference_divergence = _distance(
        np.bincount(reference, minlength=200).astype(np.float64), expected
    )

    # Chi-square with 199 degrees of freedom exceeds 281 in one of 10,000 runs (Wilson-Hilferty).
    assert chi_square < 281
    # Stratified draws are closer to the target than independent ones.
    assert divergence < reference_divergence


def _distance(counts: Floats, expected: Floats) -> tuple[float, float]:
    """Pearson's chi-square and the Kullback-Leibler divergence from the target."""
    num_draws = counts.sum()
    chi_square = ((counts - num_draws * expected) ** 2 / (num_draws * expected)).sum()
    observed = counts / num_draws
    seen = observed > 0
    divergence = (observed[seen] * np.log(observed[seen] / expected[seen])).sum()
    return float(chi_square), float(divergence)


def test_stratified_draws_take_each_equal_item_once() -> None:
    buffer = filled_with_priorities(np.ones(64, dtype=np.float32))

    assert buffer.sample(64, 0.4).slots.tolist() == list(range(64))


def test_batches_are_written_in_place_into_given_tensors() -> None:
    buffer = filled_with_priorities(np.ones(64, dtype=np.float32))
    state = buffer.random_state()
    fresh = buffer.sample(32, 0.4)
    out = allocate_batch(32, TINY)
    addresses = [getattr(out, field.name).data_ptr() for field in fields(Batch)]

    buffer.set_random_state(state)
    returned = buffer.sample(32, 0.4, out)

    assert returned is out
    assert [getattr(out, field.name).data_ptr() for field in fields(Batch)] == addresses
    for field in fields(Batch):
        assert torch.equal(getattr(out, field.name), getattr(fresh, field.name)), field.name


def test_the_same_seed_draws_the_same_batches() -> None:
    errors = np.random.default_rng(1).random(64).astype(np.float32)
    left, right = filled_with_priorities(errors), filled_with_priorities(errors)

    for _ in range(3):
        assert torch.equal(left.sample(16, 0.4).slots, right.sample(16, 0.4).slots)


def test_a_discount_above_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="discount"):
        discount_powers(1.01, 5)


def test_pure_functions_stay_on_the_device() -> None:
    sizes = RingSizes(items=1_000, steps=1_100, frames=1_200)
    with FakeTensorMode():
        storage = BlockStorage(sizes, TINY, device="cuda")
        slots = torch.arange(32, device="cuda")
        window = n_step_windows(storage.columns, slots, discount_powers(0.9, 5, device="cuda"))
        older = storage.columns.older_frames.take(slots)
        frame_slots = stack_frame_slots(slots, older, stack=4, num_frame_slots=1_200)
        weights = importance_weights(torch.rand(32, device="cuda"), 0.4)
    results = [window.returns, window.discounts, window.last_slots, frame_slots, weights]

    assert {result.device.type for result in results} == {"cuda"}
    assert [result.dtype for result in results[:3]] == [torch.float32, torch.float32, torch.int64]
    assert tuple(frame_slots.shape) == (32, 4)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_buffer_on_cuda_equals_the_slow_reference() -> None:
    steps = random_play(400, TINY, np.random.default_rng(0))
    options = ReplayOptions(capacity_items=128, block_items=16, discount=GAMMA)
    buffer = ReplayBuffer(TINY, options, device="cuda")
    for block in cut_blocks(steps, 16, TINY):
        buffer.insert(block)

    batch = buffer.sample(256, 0.4, allocate_batch(256, TINY))

    assert_matches_reference(batch, steps, TINY)
    assert buffer.update_priorities(batch.slots, batch.generations, torch.rand(256)) == 0
    assert buffer.check_sums() == 0.0
