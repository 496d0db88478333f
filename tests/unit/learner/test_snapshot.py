from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from common.errors import CheckpointCorrupt, CheckpointMismatch
from common.networks import build_network
from common.state_dicts import plain_state_dict
from learner.snapshot import restore_snapshot, take_snapshot
from learner.update import Learner, UpdateSettings
from tests.learner_factory import TINY, random_batch, tiny_learner

SETTINGS = UpdateSettings(target_sync_interval_updates=4, average_decay=0.9)


def train(learner: Learner, seeds: range) -> None:
    for seed in seeds:
        learner.update(random_batch(seed=seed))


def weights_of(learner: Learner) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in plain_state_dict(learner.online).items()}


def average_of(learner: Learner) -> dict[str, Tensor]:
    assert learner.average is not None
    return {name: tensor.clone() for name, tensor in learner.average.tensors().items()}


def assert_same_tensors(left: dict[str, Tensor], right: dict[str, Tensor]) -> None:
    assert left.keys() == right.keys()
    assert [name for name in left if not torch.equal(left[name], right[name])] == []


def compiled_learner() -> Learner:
    """A learner whose networks are wrapped, so that their own names carry the prefix."""
    online: Any = torch.compile(build_network("small", TINY, 4), backend="eager")
    target: Any = torch.compile(build_network("small", TINY, 4), backend="eager")
    return Learner(online, target, SETTINGS)


def test_restored_learner_continues_bit_for_bit() -> None:
    original = tiny_learner(SETTINGS)
    train(original, range(6))
    snapshot = take_snapshot(original)
    train(original, range(6, 15))

    restored = tiny_learner(SETTINGS, seed=99)
    train(restored, range(50, 53))
    restore_snapshot(restored, snapshot)
    train(restored, range(6, 15))

    assert_same_tensors(weights_of(restored), weights_of(original))
    assert_same_tensors(average_of(restored), average_of(original))
    assert restored.updates == original.updates == 15
    assert restored.target_syncs == original.target_syncs == 3


def test_snapshot_does_not_follow_later_updates() -> None:
    learner = tiny_learner(SETTINGS)
    train(learner, range(2))
    snapshot = take_snapshot(learner)
    groups = (snapshot.network, snapshot.target, snapshot.optimizer, snapshot.average)
    before = [{name: tensor.clone() for name, tensor in group.items()} for group in groups]

    train(learner, range(2, 6))

    for group, copy in zip(groups, before, strict=True):
        assert_same_tensors(dict(group), copy)


def test_learner_that_never_updated_can_be_restored() -> None:
    fresh, used = tiny_learner(SETTINGS), tiny_learner(SETTINGS, seed=1)
    train(used, range(3))

    restore_snapshot(used, take_snapshot(fresh))
    train(used, range(3))
    train(fresh, range(3))

    assert_same_tensors(weights_of(used), weights_of(fresh))


def test_a_run_that_kept_no_average_begins_it_with_the_network_it_has() -> None:
    without, averaging = tiny_learner(), tiny_learner(SETTINGS, seed=1)
    train(without, range(3))
    train(averaging, range(5, 9))

    restore_snapshot(averaging, take_snapshot(without))

    assert_same_tensors(average_of(averaging), weights_of(without))
    train(averaging, range(9, 10))
    moved, mean = weights_of(averaging), average_of(averaging)
    assert any(not torch.equal(moved[name], mean[name]) for name in mean)


def test_learning_rate_and_counters_return() -> None:
    learner, other = tiny_learner(), tiny_learner()
    learner.set_learning_rate(1e-4)
    learner.skipped_updates = 7

    restore_snapshot(other, take_snapshot(learner))

    assert other.optimizer.param_groups[0]["lr"] == 1e-4
    assert other.skipped_updates == 7


def test_compiled_and_plain_learners_exchange_snapshots() -> None:
    plain, wrapped = tiny_learner(SETTINGS), compiled_learner()
    assert all(name.startswith("_orig_mod.") for name in wrapped.online.state_dict())
    train(plain, range(2))

    restore_snapshot(wrapped, take_snapshot(plain))
    snapshot = take_snapshot(wrapped)
    names = [*snapshot.network, *snapshot.target, *snapshot.optimizer, *snapshot.average]
    assert not any("_orig_mod" in name for name in names)
    assert_same_tensors(weights_of(wrapped), weights_of(plain))
    assert_same_tensors(dict(snapshot.optimizer), dict(take_snapshot(plain).optimizer))

    prefixed = replace(
        snapshot,
        network={f"_orig_mod.{name}": tensor for name, tensor in snapshot.network.items()},
        optimizer={f"_orig_mod.{name}": tensor for name, tensor in snapshot.optimizer.items()},
    )
    other = tiny_learner(SETTINGS, seed=5)
    restore_snapshot(other, prefixed)
    assert_same_tensors(weights_of(other), weights_of(plain))


@pytest.mark.parametrize("group", ["network", "target", "optimizer", "average"])
def test_tensor_of_another_shape_is_named_and_nothing_changes(group: str) -> None:
    learner = tiny_learner(SETTINGS)
    train(learner, range(1))
    snapshot = take_snapshot(learner)
    before = weights_of(learner)
    tensors = dict(getattr(snapshot, group))
    name = next(iter(tensors))
    tensors[name] = torch.zeros(3, 3)
    others = {name: tensor + 1 for name, tensor in snapshot.network.items()}
    changed = replace(snapshot, **({"network": others} | {group: tensors}))  # type: ignore[arg-type] # tensor fields only

    with pytest.raises(CheckpointMismatch, match=rf"{name}: .*got float32 \[3, 3\]"):
        restore_snapshot(learner, changed)

    assert_same_tensors(weights_of(learner), before)


@pytest.mark.parametrize("group", ["network", "target", "optimizer", "average"])
def test_value_that_is_not_finite_is_refused(group: str) -> None:
    learner = tiny_learner(SETTINGS)
    train(learner, range(1))
    snapshot = take_snapshot(learner)
    tensors = getattr(snapshot, group)
    name = next(iter(tensors))
    tensors[name].view(-1)[0] = float("nan")

    with pytest.raises(CheckpointCorrupt, match=name):
        restore_snapshot(learner, snapshot)


@pytest.mark.parametrize("counters", [{}, {"updates": "x"}, {"updates": None}])
def test_damaged_counters_are_refused(counters: Any) -> None:
    learner = tiny_learner()
    snapshot = replace(take_snapshot(learner), counters=counters)

    with pytest.raises(CheckpointCorrupt, match="counters"):
        restore_snapshot(learner, snapshot)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_cuda_snapshot_loads_on_the_cpu() -> None:
    on_cuda, on_cpu = tiny_learner(device="cuda"), tiny_learner(seed=1)
    on_cuda.update(random_batch(device="cuda"))

    restore_snapshot(on_cpu, take_snapshot(on_cuda))

    assert on_cpu.update(random_batch()).finite
