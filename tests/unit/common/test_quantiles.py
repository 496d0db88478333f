from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from common.quantiles import (
    greedy_actions,
    q_values,
    quantile_huber_loss,
    quantile_targets,
    quantiles_of_actions,
)

F64 = npt.NDArray[np.float64]


def slow_quantile_huber_loss(predicted: F64, targets: F64) -> F64:
    """Loops and plain numbers: sum over predictions of the mean over targets."""
    batch_size, num_predicted = predicted.shape
    losses = np.zeros(batch_size)
    for row in range(batch_size):
        for i in range(num_predicted):
            tau = (2 * i + 1) / (2 * num_predicted)
            total = 0.0
            for target in targets[row]:
                error = target - predicted[row, i]
                size = abs(error)
                huber = size * size / 2 if size <= 1 else size - 0.5
                total += (tau if error >= 0 else 1 - tau) * huber
            losses[row] += total / len(targets[row])
    return losses


@pytest.mark.parametrize("num_quantiles", [1, 2, 5, 32])
def test_loss_equals_the_slow_version(num_quantiles: int) -> None:
    rng = np.random.default_rng(num_quantiles)
    predicted = rng.normal(size=(4, num_quantiles), scale=2.0)
    targets = rng.normal(size=(4, 7), scale=2.0)

    losses = quantile_huber_loss(torch.tensor(predicted), torch.tensor(targets))

    np.testing.assert_allclose(losses.numpy(), slow_quantile_huber_loss(predicted, targets))


def test_loss_of_a_single_known_error() -> None:
    loss = quantile_huber_loss(torch.tensor([[0.0]]), torch.tensor([[3.0]]))

    assert loss.tolist() == [0.5 * 2.5]


def test_minimum_of_the_loss_is_at_the_quantiles() -> None:
    samples = torch.linspace(0.0, 100.0, 401, dtype=torch.float64).unsqueeze(0)
    predicted = torch.zeros(1, 4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([predicted], lr=1.0)

    for _ in range(400):
        optimizer.zero_grad()
        loss = quantile_huber_loss(predicted, samples).sum()
        loss.backward()  # type: ignore[no-untyped-call] # torch leaves it untyped
        optimizer.step()

    assert predicted.tolist()[0] == pytest.approx([12.5, 37.5, 62.5, 87.5], abs=1.0)


def test_targets_bootstrap_only_where_the_discount_says_so() -> None:
    targets = quantile_targets(
        torch.tensor([1.0, 2.0]), torch.tensor([0.5, 0.0]), torch.tensor([[4.0, 6.0], [8.0, 9.0]])
    )

    assert targets.tolist() == [[3.0, 4.0], [2.0, 2.0]]


def test_greedy_action_has_the_highest_mean_not_the_highest_quantile() -> None:
    quantiles = torch.tensor([[[0.0, 10.0], [6.0, 6.0], [-1.0, 5.0]]])

    assert q_values(quantiles).tolist() == [[5.0, 6.0, 2.0]]
    assert greedy_actions(quantiles).tolist() == [1]


def test_quantiles_of_actions_picks_one_row_each() -> None:
    quantiles = torch.arange(12.0).view(2, 3, 2)

    assert quantiles_of_actions(quantiles, torch.tensor([2, 0])).tolist() == [[4, 5], [6, 7]]


def test_functions_stay_on_the_device_of_their_inputs() -> None:
    with FakeTensorMode():
        quantiles = torch.zeros(5, 3, 8, device="cuda")
        rows = torch.zeros(5, device="cuda")
        chosen = quantiles_of_actions(quantiles, greedy_actions(quantiles))
        losses = quantile_huber_loss(chosen, quantile_targets(rows, rows, chosen))

    assert losses.device.type == "cuda"
    assert tuple(losses.shape) == (5,)
