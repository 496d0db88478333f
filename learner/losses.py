"""What the learner minimises: pure functions of tensors, checked against slow NumPy versions."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from common.batch import Batch
from common.quantiles import (
    greedy_actions,
    q_values,
    quantile_huber_loss,
    quantile_targets,
    quantiles_of_actions,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextQuantiles:
    """Two opinions on the bootstrap states; neither takes part in the gradient."""

    online: Tensor
    """float32 [B, A, N], chooses the action."""
    target: Tensor
    """float32 [B, A, N], says what the choice is worth."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossTerms:
    loss: Tensor
    """float32 [], the importance-weighted mean: what is minimised."""
    errors: Tensor
    """float32 [B], loss of each sample, detached: priorities before the exponent alpha."""
    q_mean: Tensor
    """float32 [], mean value of the actions taken, detached."""


def double_q_targets(batch: Batch, after: NextQuantiles) -> Tensor:
    """Double Q-learning (van Hasselt et al. 2016): targets float32 [B, N], detached."""
    chosen = quantiles_of_actions(after.target, greedy_actions(after.online))
    return quantile_targets(batch.returns, batch.discounts, chosen).detach()


def double_q_loss(quantiles: Tensor, batch: Batch, after: NextQuantiles) -> LossTerms:
    """The loss of the online network's `quantiles` [B, A, N] for the batch's observations."""
    taken = quantiles_of_actions(quantiles, batch.actions)
    errors = quantile_huber_loss(taken, double_q_targets(batch, after))
    return LossTerms(
        loss=(batch.weights * errors).mean(),
        errors=errors.detach(),
        q_mean=q_values(taken.detach().unsqueeze(1)).mean(),
    )
