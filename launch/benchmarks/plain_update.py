"""The reference of the benchmark `learner`: the same update as one would first write it.

Eager float32, contiguous NCHW, a forward pass of its own for each state and network, Adam as it
comes. It computes the same loss as ours, which tests/unit/launch/benchmarks/test_learner.py holds.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from common.batch import Batch
from common.networks import QuantileNetwork


class PlainLearner:
    """Trains `online`; `target` stays as it is."""

    def __init__(
        self, online: QuantileNetwork, target: QuantileNetwork, *, max_grad_norm: float = 10.0
    ) -> None:
        self.online = online
        self.target = target
        self._max_grad_norm = max_grad_norm
        self._optimizer = self.optimizer()

    def optimizer(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.online.parameters(), lr=2.5e-4, eps=1.5e-4)

    def update(self, batch: Batch) -> tuple[float, Tensor]:
        """The loss, and the error of each sample."""
        errors = self.errors(batch)
        loss = (errors * batch.weights).mean()
        self._optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call] # torch's own gap
        nn.utils.clip_grad_norm_(self.online.parameters(), self._max_grad_norm)
        self._optimizer.step()
        return loss.item(), errors.detach()

    def errors(self, batch: Batch) -> Tensor:
        """The quantile Huber loss of double Q-learning: float32 [B]."""
        rows = torch.arange(batch.size)
        quantiles, online_after, target_after = self.look(batch)
        predicted = quantiles[rows, batch.actions]
        value = target_after[rows, online_after.mean(dim=2).argmax(dim=1)]
        targets = batch.returns[:, None] + batch.discounts[:, None] * value
        count = predicted.shape[1]
        taus = (torch.arange(count) + 0.5) / count
        difference = targets[:, None, :] - predicted[:, :, None]
        size = difference.abs()
        huber = torch.where(size <= 1.0, 0.5 * difference**2, size - 0.5)
        weight = torch.where(difference < 0, 1.0 - taus[None, :, None], taus[None, :, None])
        return (weight * huber).mean(dim=2).sum(dim=1)

    def look(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Values now, and of what follows by both networks: float32 [B, A, N] each."""
        now = self.values(self.online, scaled(batch.observations), batch.prev_actions)
        with torch.no_grad():
            after = [
                self.values(network, scaled(batch.next_observations), batch.next_prev_actions)
                for network in (self.online, self.target)
            ]
        return now, after[0], after[1]

    def values(self, network: QuantileNetwork, pixels: Tensor, prev_actions: Tensor) -> Tensor:
        return values_of(network, network.body(pixels), prev_actions)


def scaled(observations: Tensor) -> Tensor:
    return observations.contiguous().float() / 255.0


def values_of(network: QuantileNetwork, features: Tensor, prev_actions: Tensor) -> Tensor:
    """The layers of our network behind its body, one after the other: float32 [B, A, N]."""
    actions = functional.one_hot(prev_actions, network.num_actions + 1)[:, :-1].float()
    hidden = functional.relu(network.hidden(torch.cat([features, actions], dim=1)))
    for_value, for_advantage = hidden.chunk(2, dim=1)
    value = network.value(for_value)[:, None, :]
    advantage = network.advantage(for_advantage)
    advantage = advantage.view(-1, network.num_actions, network.num_quantiles)
    result: Tensor = value + advantage - advantage.mean(dim=1, keepdim=True)
    return result
