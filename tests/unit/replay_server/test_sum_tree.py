from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from common.errors import ConfigError
from common.replay_sizes import MAX_ROOT_NODES, tree_bytes, tree_level_sizes
from replay_server.sum_tree import QUANTUM, SumTree

SIZES = st.sampled_from([1, 5, 16, 8192, 8193, 140_000, 1_048_577])
PRIORITIES = st.one_of(st.just(0.0), st.floats(1e-3, 1e6))


def tree_of(priorities: list[float], num_leaves: int | None = None) -> SumTree:
    tree = SumTree(num_leaves or len(priorities))
    tree.set(torch.arange(len(priorities)), torch.tensor(priorities, dtype=torch.float64))
    return tree


def uniforms(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


@settings(max_examples=60, deadline=None)
@given(num_leaves=SIZES, data=st.data())
def test_tree_agrees_with_a_plain_list(num_leaves: int, data: st.DataObject) -> None:
    tree = SumTree(num_leaves)
    plain = np.zeros(num_leaves)
    leaf = st.integers(0, num_leaves - 1)
    for _ in range(3):
        writes = data.draw(st.lists(st.tuples(leaf, PRIORITIES), min_size=1, max_size=20))
        for index, priority in writes:
            plain[index] = priority
        leaves, priorities = zip(*writes, strict=True)
        tree.set(torch.tensor(leaves), torch.tensor(priorities, dtype=torch.float64))

    np.testing.assert_allclose(tree.leaves().numpy(), plain, rtol=0, atol=QUANTUM)
    assert float(tree.total()) == pytest.approx(plain.sum(), abs=QUANTUM * 60)
    assert tree.drift() == 0.0


@settings(max_examples=60, deadline=None)
@given(
    num_leaves=SIZES,
    writes=st.dictionaries(st.integers(0, 10**6), st.floats(1e-3, 1e6), min_size=1, max_size=30),
    position=st.floats(0, 1, exclude_max=True),
)
def test_sample_finds_the_leaf_that_a_walk_over_the_list_finds(
    num_leaves: int, writes: dict[int, float], position: float
) -> None:
    plain = {leaf % num_leaves: priority for leaf, priority in writes.items()}
    tree = SumTree(num_leaves)
    tree.set(torch.tensor(list(plain)), torch.tensor(list(plain.values()), dtype=torch.float64))
    total = float(tree.total())

    leaf = int(tree.sample(uniforms(position))[0])

    before = sum(float(tree.get(torch.tensor([i]))[0]) for i in plain if i < leaf)
    own = float(tree.get(torch.tensor([leaf]))[0])
    rounding = total * 1e-12 + QUANTUM
    assert own > 0
    assert before - rounding <= position * total <= before + own + rounding


@pytest.mark.parametrize("num_leaves", [4_000, 9_000, 140_000])
def test_equal_leaves_are_found_one_by_one_at_every_depth(num_leaves: int) -> None:
    tree = tree_of([0.75] * num_leaves)
    middles = (torch.arange(num_leaves, dtype=torch.float64) + 0.5) / num_leaves

    assert torch.equal(tree.sample(middles), torch.arange(num_leaves))


@pytest.mark.parametrize("num_leaves", [70_000, 131_073, 1_048_577])
def test_draws_are_those_of_a_search_in_all_the_sums(num_leaves: int) -> None:
    generator = torch.Generator().manual_seed(2)
    tree = SumTree(num_leaves)
    tree.set_distinct(torch.arange(num_leaves), torch.rand(num_leaves, generator=generator))
    positions = torch.rand(20_000, dtype=torch.float64, generator=generator)

    sums = tree.quanta().cumsum(0)
    expected = torch.searchsorted(sums, (positions * sums[-1]).to(torch.int64), right=True)

    assert torch.equal(tree.sample(positions), expected)


@pytest.mark.parametrize(("num_leaves", "levels"), [(8_192, 1), (8_193, 2), (1_048_577, 3)])
def test_the_leaf_beside_a_million_slots_costs_no_level_more(num_leaves: int, levels: int) -> None:
    sizes = tree_level_sizes(num_leaves)

    assert len(sizes) == levels
    assert sizes[-1] <= MAX_ROOT_NODES


def test_last_of_equal_leaves_counts() -> None:
    tree = SumTree(100_000)

    tree.set(torch.tensor([7, 90_000, 7, 7]), uniforms(1.0, 2.0, 3.0, 5.0))

    assert tree.get(torch.tensor([7, 90_000])).tolist() == [5.0, 2.0]
    assert float(tree.total()) == 7.0


def test_setting_distinct_leaves_equals_setting_any() -> None:
    leaves = torch.randperm(140_000, generator=torch.Generator().manual_seed(0))
    priorities = torch.rand(140_000, generator=torch.Generator().manual_seed(1))
    left, right = tree_of([3.0] * 140_000), tree_of([3.0] * 140_000)

    left.set(leaves, priorities)
    right.set_distinct(leaves, priorities)

    assert torch.equal(left.leaves(), right.leaves())
    assert left.drift() == right.drift() == 0.0


def test_setting_nothing_changes_nothing() -> None:
    tree = tree_of([1.0, 2.0])

    tree.set(torch.tensor([], dtype=torch.int64), torch.tensor([]))

    assert tree.leaves().tolist() == [1.0, 2.0]


def test_a_leaf_of_priority_zero_is_never_drawn() -> None:
    generator = torch.Generator().manual_seed(3)
    priorities = torch.rand(140_000, dtype=torch.float64, generator=generator)
    priorities[torch.rand(140_000, generator=generator) < 0.9] = 0.0
    tree = SumTree(140_000)
    tree.set(torch.arange(140_000), priorities)
    edges = uniforms(0.0, 1.0 - 2**-53, 1.0)
    positions = torch.cat([torch.rand(200_000, dtype=torch.float64, generator=generator), edges])

    leaves = tree.sample(positions)

    assert int((priorities[leaves] == 0).sum()) == 0


@pytest.mark.parametrize("alive", [0, 4_095, 139_999])
def test_a_single_positive_leaf_takes_every_draw(alive: int) -> None:
    tree = SumTree(140_000)
    tree.set(torch.tensor([alive]), uniforms(1e-12))

    leaves = tree.sample(torch.linspace(0, 1, 50, dtype=torch.float64))

    assert set(leaves.tolist()) == {alive}


def test_increasing_positions_give_non_decreasing_leaves() -> None:
    tree = tree_of(np.random.default_rng(0).random(9_000).tolist())

    leaves = tree.sample(torch.linspace(0, 0.999999, 5_000, dtype=torch.float64))

    assert bool((leaves[1:] >= leaves[:-1]).all())


def test_sums_do_not_drift_over_many_updates() -> None:
    tree = SumTree(9_000)
    generator = torch.Generator().manual_seed(1)
    for _ in range(2_000):
        leaves = torch.randint(0, 9_000, (64,), generator=generator)
        tree.set(leaves, torch.rand(64, dtype=torch.float64, generator=generator) * 1e5)

    tree.set(torch.arange(9_000), torch.zeros(9_000))

    assert float(tree.total()) == 0.0


def test_drift_sees_a_wrong_sum_and_rebuild_repairs_it() -> None:
    tree = tree_of([1.0] * 9_000)
    tree._levels[-1][3] += 2**20

    assert tree.drift() == 1.0
    tree.rebuild()
    assert tree.drift() == 0.0
    assert float(tree.total()) == 9_000.0


def test_a_priority_that_would_overflow_the_sums_is_cut() -> None:
    tree = SumTree(140_000)
    tree.set(torch.arange(140_000), torch.full((140_000,), 1e300, dtype=torch.float64))

    assert float(tree.total()) == pytest.approx(140_000 * tree.max_priority, rel=1e-6)
    assert tree.drift() == 0.0


def test_a_tree_without_leaves_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least one leaf"):
        SumTree(0)


def test_memory_is_known_before_building() -> None:
    levels = SumTree(1_048_576)._levels

    assert tree_bytes(1_048_576) == sum(level.nbytes for level in levels)


def test_everything_stays_on_the_device() -> None:
    with FakeTensorMode():
        tree = SumTree(1_048_576, device="cuda")
        leaves = torch.arange(512, device="cuda")
        tree.set(leaves, torch.ones(512, device="cuda"))
        tree.set_distinct(leaves, torch.ones(512, device="cuda"))
        drawn = tree.sample(torch.rand(512, dtype=torch.float64, device="cuda"))
        results = [drawn, tree.get(leaves), tree.total(), tree.leaves_every(64)]

    assert {result.device.type for result in results} == {"cuda"}
    assert drawn.dtype == torch.int64
    assert tree.total().dtype == torch.float64


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_and_cpu_agree_bit_for_bit() -> None:
    generator = torch.Generator().manual_seed(5)
    leaves = torch.randint(0, 300_000, (20_000,), generator=generator)
    priorities = torch.rand(20_000, dtype=torch.float64, generator=generator)
    positions = torch.rand(10_000, dtype=torch.float64, generator=generator)
    on_cpu, on_cuda = SumTree(300_000), SumTree(300_000, device="cuda")
    on_cpu.set(leaves, priorities)
    on_cuda.set(leaves.cuda(), priorities.cuda())

    assert torch.equal(on_cpu.leaves(), on_cuda.leaves().cpu())
    assert torch.equal(on_cpu.sample(positions), on_cuda.sample(positions.cuda()).cpu())
