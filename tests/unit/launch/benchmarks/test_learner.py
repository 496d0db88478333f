from __future__ import annotations

import copy

import pytest
import torch

from common.errors import BenchmarkFailed
from common.networks import build_network
from common.specs import DataSpec
from launch.benchmarks.learner import GAPS, random_batch, rows_of
from launch.benchmarks.plain_update import PlainLearner
from launch.benchmarks.update_variants import VARIANTS
from learner.update import Learner, UpdateSettings

SPEC = DataSpec(height=36, width=36, stack=2, num_actions=3, n_step=2)


def _contenders() -> tuple[PlainLearner, Learner]:
    """The same networks; the target differs from the online one, as it does while training."""
    torch.manual_seed(3)
    online, target = (build_network("small", SPEC, 8) for _ in range(2))
    ours = Learner(copy.deepcopy(online), copy.deepcopy(target), UpdateSettings())
    ours.target.load_state_dict(target.state_dict())
    return PlainLearner(online, target), ours


def test_the_plain_update_has_the_same_loss_and_the_same_priorities_as_ours() -> None:
    batch = random_batch(16, SPEC)
    plain, ours = _contenders()

    loss, errors = plain.update(batch)
    result = ours.update(batch)

    assert loss == pytest.approx(result.loss, rel=1e-5)
    torch.testing.assert_close(errors, result.priorities, rtol=1e-4, atol=1e-6)


def test_it_moves_the_weights_where_ours_does() -> None:
    batch = random_batch(16, SPEC)
    plain, ours = _contenders()

    for _ in range(3):
        plain.update(batch)
        ours.update(batch)

    for name, tensor in plain.online.state_dict().items():
        torch.testing.assert_close(tensor, ours.online.state_dict()[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_learns_what_the_plain_update_learns(name: str) -> None:
    batch = random_batch(16, SPEC)
    plain, ours = _contenders()
    variant = VARIANTS[name](copy.deepcopy(plain.online), ours.target)

    for _ in range(3):
        plain.update(batch)
        variant.update(batch)

    for parameter, tensor in plain.online.state_dict().items():
        other = variant.online.state_dict()[parameter]
        torch.testing.assert_close(tensor, other, rtol=1e-3, atol=1e-5)


def test_batches_are_as_the_replay_server_sends_them() -> None:
    batch = random_batch(64, SPEC)

    assert (batch.discounts == 0).any()
    assert ((batch.discounts >= 0) & (batch.discounts < 1)).all()
    assert ((batch.weights > 0) & (batch.weights <= 1)).all()
    assert (batch.actions < SPEC.num_actions).all()


def test_gaps_are_everything_but_the_update() -> None:
    beats = [
        {"uptime_s": uptime_s, "share_wait": 0.5, "share_checkpoint": 0.1, "share_forward": 0.3}
        for uptime_s in (10.0, 20.0, 30.0)
    ]

    rows = {row.contender: row for row in rows_of(beats, checkpoints=4)}

    assert {f"gap: {name}" for name in GAPS} < rows.keys()
    assert rows["gaps together"].median == pytest.approx(0.6)
    assert rows["a checkpoint in the training thread"].median == pytest.approx(0.1 * 20 / 4)


def test_a_silent_learner_is_an_error() -> None:
    with pytest.raises(BenchmarkFailed):
        rows_of([], checkpoints=0)
