"""Quantile regression for action values (QR-DQN): pure functions of tensors, on any device.

Terms. A quantile tensor [B, A, N] holds, per action, N equally likely values of the return, for
the midpoints tau_i = (i + 0.5) / N. Actors use these functions for initial priorities, the learner
for its loss, so both speak of the same error.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

HUBER_KAPPA = 1.0


def q_values(quantiles: Tensor) -> Tensor:
    """The expected return of each action: [B, A, N] to [B, A]."""
    return quantiles.mean(dim=2)


def greedy_actions(quantiles: Tensor) -> Tensor:
    """The action of the highest expected return: [B, A, N] to int64 [B]."""
    return q_values(quantiles).argmax(dim=1)


def quantiles_of_actions(quantiles: Tensor, actions: Tensor) -> Tensor:
    """The quantiles of one chosen action per row: [B, A, N] and int64 [B] to [B, N]."""
    index = actions.view(-1, 1, 1).expand(-1, 1, quantiles.shape[2])
    return quantiles.gather(1, index).squeeze(1)


def quantile_targets(returns: Tensor, discounts: Tensor, next_quantiles: Tensor) -> Tensor:
    """The target distribution: [B], [B] and [B, N] to [B, N].

    `discounts` is 0 where the game ended, so nothing is bootstrapped there.
    """
    return returns.unsqueeze(1) + discounts.unsqueeze(1) * next_quantiles


def quantile_huber_loss(predicted: Tensor, targets: Tensor) -> Tensor:
    """The loss of each sample: [B, N] and [B, M] to [B].

    Dabney et al. 2018, eq. 10 with kappa 1: a sum over the predicted quantiles of the mean over
    the targets, where an error on the far side of the quantile weighs tau or 1 - tau.
    """
    num_quantiles = predicted.shape[1]
    midpoints = torch.arange(num_quantiles, device=predicted.device, dtype=predicted.dtype)
    midpoints = ((midpoints + 0.5) / num_quantiles).view(1, -1, 1)
    errors = targets.unsqueeze(1) - predicted.unsqueeze(2)
    huber = functional.huber_loss(
        errors, torch.zeros_like(errors), reduction="none", delta=HUBER_KAPPA
    )
    overestimated = (errors.detach() < 0).to(predicted.dtype)
    return ((midpoints - overestimated).abs() * huber).mean(dim=2).sum(dim=1)
