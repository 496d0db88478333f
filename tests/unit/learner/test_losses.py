from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from common.batch import Batch, allocate_batch
from learner.losses import NextQuantiles, double_q_loss, double_q_targets
from tests.learner_factory import TINY, random_batch

F64 = npt.NDArray[np.float64]
NUM_QUANTILES = 4


def random_quantiles(seed: int, batch_size: int = 8) -> torch.Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(batch_size, TINY.num_actions, NUM_QUANTILES, generator=rng)


def slow_targets(batch: Batch, online: F64, target: F64) -> F64:
    rows = []
    for row in range(batch.size):
        means = [sum(values) / len(values) for values in online[row]]
        best = means.index(max(means))
        discount, gain = batch.discounts[row].item(), batch.returns[row].item()
        rows.append([gain + discount * value for value in target[row][best]])
    return np.array(rows)


def slow_error(predicted: F64, targets: F64) -> float:
    total = 0.0
    for i, value in enumerate(predicted):
        tau = (i + 0.5) / len(predicted)
        for target in targets:
            error = target - value
            huber = error**2 / 2 if abs(error) <= 1 else abs(error) - 0.5
            total += abs(tau - (error < 0)) * huber / len(targets)
    return total


def test_targets_equal_the_slow_version() -> None:
    batch = random_batch()
    online, target = random_quantiles(1), random_quantiles(2)

    targets = double_q_targets(batch, NextQuantiles(online=online, target=target))

    expected = slow_targets(batch, online.double().numpy(), target.double().numpy())
    np.testing.assert_allclose(targets.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_online_chooses_and_target_values() -> None:
    batch = random_batch(batch_size=1)
    batch.discounts.fill_(1.0)
    batch.returns.fill_(0.0)
    online = torch.tensor([[[0.0], [9.0], [1.0]]])
    target = torch.tensor([[[7.0], [2.0], [5.0]]])

    targets = double_q_targets(batch, NextQuantiles(online=online, target=target))

    assert targets.tolist() == [[2.0]]


def test_n_step_return_with_its_discount_gives_the_textbook_target() -> None:
    gamma, rewards, bootstrap = 0.9, [1.0, 0.0, 2.0], 10.0
    batch = random_batch(batch_size=1)
    batch.returns.fill_(sum(gamma**k * reward for k, reward in enumerate(rewards)))
    batch.discounts.fill_(gamma ** len(rewards))
    after = torch.full((1, TINY.num_actions, NUM_QUANTILES), bootstrap)

    targets = double_q_targets(batch, NextQuantiles(online=after, target=after))

    expected = 1.0 + 0.81 * 2.0 + 0.729 * 10.0
    np.testing.assert_allclose(targets.numpy(), np.full((1, NUM_QUANTILES), expected), rtol=1e-6)


def test_loss_and_priorities_equal_the_slow_version() -> None:
    batch = random_batch()
    quantiles, after = random_quantiles(3), random_quantiles(4)
    targets = slow_targets(batch, after.double().numpy(), after.double().numpy())

    terms = double_q_loss(quantiles, batch, NextQuantiles(online=after, target=after))

    taken = [quantiles[row, batch.actions[row]].double().numpy() for row in range(batch.size)]
    errors = [slow_error(taken[row], targets[row]) for row in range(batch.size)]
    weighted = [batch.weights[row].item() * error for row, error in enumerate(errors)]
    np.testing.assert_allclose(terms.errors.numpy(), errors, rtol=1e-4)
    np.testing.assert_allclose(terms.loss.item(), np.mean(weighted), rtol=1e-4)
    np.testing.assert_allclose(terms.q_mean.item(), np.mean(taken), rtol=1e-4, atol=1e-6)


def test_gradient_reaches_the_taken_actions_only() -> None:
    batch = random_batch()
    quantiles = random_quantiles(3).requires_grad_()
    after = random_quantiles(4).requires_grad_()

    terms = double_q_loss(quantiles, batch, NextQuantiles(online=after, target=after))
    terms.loss.backward()  # type: ignore[no-untyped-call] # torch leaves it untyped

    assert after.grad is None
    assert quantiles.grad is not None
    touched = quantiles.grad.abs().sum(dim=2) > 0
    expected = torch.nn.functional.one_hot(batch.actions, TINY.num_actions).bool()
    assert torch.equal(touched, expected)
    assert not terms.errors.requires_grad


def test_loss_stays_on_the_device() -> None:
    with FakeTensorMode():
        batch = allocate_batch(8, TINY, device="cuda")
        quantiles = torch.zeros(8, TINY.num_actions, NUM_QUANTILES, device="cuda")
        terms = double_q_loss(quantiles, batch, NextQuantiles(online=quantiles, target=quantiles))

    assert {terms.loss.device.type, terms.errors.device.type, terms.q_mean.device.type} == {"cuda"}
