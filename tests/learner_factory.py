"""Random batches and tiny learners for tests."""

from __future__ import annotations

import torch

from common.batch import Batch
from common.networks import build_network
from common.specs import DataSpec
from learner.update import Learner, UpdateSettings

TINY = DataSpec(height=8, width=8, stack=2, num_actions=3, n_step=2)


def random_batch(
    batch_size: int = 8, spec: DataSpec = TINY, seed: int = 0, device: str = "cpu"
) -> Batch:
    """A batch whose every field has the right type and range; some games ended."""
    rng = torch.Generator().manual_seed(seed)
    images = (batch_size, spec.stack, spec.height, spec.width)
    row = (batch_size,)

    def integers(high: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.randint(0, high, shape, generator=rng, dtype=dtype).to(device)

    ended = torch.rand(row, generator=rng) < 0.3
    discounts = torch.where(ended, 0.0, 0.95 ** torch.randint(1, 6, row, generator=rng))
    return Batch(
        observations=integers(256, images, torch.uint8),
        next_observations=integers(256, images, torch.uint8),
        actions=integers(spec.num_actions, row, torch.int64),
        prev_actions=integers(spec.num_actions + 1, row, torch.int64),
        next_prev_actions=integers(spec.num_actions, row, torch.int64),
        returns=torch.randn(row, generator=rng).to(device) * 2,
        discounts=discounts.to(device=device, dtype=torch.float32),
        weights=torch.rand(row, generator=rng).to(device),
        slots=integers(1000, row, torch.int64),
        generations=integers(1000, row, torch.int64),
    )


def tiny_learner(
    settings: UpdateSettings | None = None, seed: int = 0, device: str = "cpu"
) -> Learner:
    torch.manual_seed(seed)
    online, target = (build_network("small", TINY, 4, device=device) for _ in range(2))
    return Learner(online, target, settings or UpdateSettings())
