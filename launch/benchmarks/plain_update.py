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
        self._optimizer = torch.optim.Adam(online.parameters(), lr=2.5e-4, eps=1.5e-4)

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
        quantiles = forward(self.online, batch.observations, batch.prev_actions)
        predicted = quantiles[rows, batch.actions]
        with torch.no_grad():
            after = (batch.next_observations, batch.next_prev_actions)
            best = forward(self.online, *after).mean(dim=2).argmax(dim=1)
            value = forward(self.target, *after)[rows, best]
            targets = batch.returns[:, None] + batch.discounts[:, None] * value
        count = predicted.shape[1]
        taus = (torch.arange(count) + 0.5) / count
        difference = targets[:, None, :] - predicted[:, :, None]
        size = difference.abs()
        huber = torch.where(size <= 1.0, 0.5 * difference**2, size - 0.5)
        weight = torch.where(difference < 0, 1.0 - taus[None, :, None], taus[None, :, None])
        return (weight * huber).mean(dim=2).sum(dim=1)


def forward(network: QuantileNetwork, observations: Tensor, prev_actions: Tensor) -> Tensor:
    """The layers of our network, one after the other: float32 [B, A, N]."""
    pixels = observations.contiguous().float() / 255.0
    features = network.body(pixels)
    actions = functional.one_hot(prev_actions, network.num_actions + 1)[:, :-1].float()
    hidden = functional.relu(network.hidden(torch.cat([features, actions], dim=1)))
    for_value, for_advantage = hidden.chunk(2, dim=1)
    value = network.value(for_value)[:, None, :]
    advantage = network.advantage(for_advantage)
    advantage = advantage.view(-1, network.num_actions, network.num_quantiles)
    result: Tensor = value + advantage - advantage.mean(dim=1, keepdim=True)
    return result
