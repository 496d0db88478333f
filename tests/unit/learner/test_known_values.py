"""Two states with known values: what is learned must come from the state after, over the target."""

from __future__ import annotations

import torch

from common.batch import Batch
from learner.update import Learner, UpdateSettings
from tests.learner_factory import TINY, tiny_learner

DISCOUNT = 0.5
FIRST, SECOND = 0, 255
"""The pixels of the two states: the second pays 1 and ends, the first leads there and pays 0."""


def state(pixel: int) -> torch.Tensor:
    return torch.full((TINY.stack, TINY.height, TINY.width), pixel, dtype=torch.uint8)


def chain() -> Batch:
    """Both transitions with every action."""
    actions = torch.arange(TINY.num_actions).repeat(2)
    size = 2 * TINY.num_actions
    is_second = torch.arange(size) >= TINY.num_actions
    none = torch.full((size,), TINY.no_action)
    return Batch(
        observations=torch.stack([state(SECOND if late else FIRST) for late in is_second]),
        next_observations=torch.stack([state(SECOND)] * size),
        actions=actions,
        prev_actions=none,
        next_prev_actions=none,
        returns=is_second.float(),
        discounts=torch.where(is_second, 0.0, DISCOUNT),
        weights=torch.ones(size),
        slots=torch.zeros(size, dtype=torch.int64),
        generations=torch.zeros(size, dtype=torch.int64),
    )


def values(learner: Learner) -> list[float]:
    """Of the two states, the mean over actions and quantiles."""
    with torch.no_grad():
        both = torch.stack([state(FIRST), state(SECOND)])
        quantiles = learner.online(both, torch.full((2,), TINY.no_action))
    return [float(value) for value in quantiles.mean(dim=(1, 2))]


def test_values_come_back_from_the_state_after() -> None:
    learner = tiny_learner(UpdateSettings(learning_rate=1e-3, target_sync_interval_updates=20))
    batch = chain()

    for _ in range(400):
        learner.update(batch)

    first, second = values(learner)
    assert abs(second - 1.0) < 0.05
    assert abs(first - DISCOUNT) < 0.05
