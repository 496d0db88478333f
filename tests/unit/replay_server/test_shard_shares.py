from __future__ import annotations

import torch

from common.config import EnvSettings, LearnerSettings, ReplaySettings, RunSettings, Settings
from replay_server.assembly import build_buffer, build_limiter


def settings_with(shards: int) -> Settings:
    return Settings(
        run=RunSettings(device="cpu"),
        env=EnvSettings(size=8),
        learner=LearnerSettings(batch_size=16),
        replay=ReplaySettings(
            capacity=12_000,
            learning_starts=3_001,
            balance_slack_agent_steps=2_000,
            replay_shards=shards,
        ),
    )


def test_the_numbers_of_the_run_are_divided_over_its_servers() -> None:
    whole, third = (build_limiter(settings_with(shards), 4_000).limit for shards in (1, 3))

    assert (whole.min_inserted, third.min_inserted) == (3_001, 1_001)
    assert (whole.slack_samples, third.slack_samples) == (8_000, 4 * 667)
    assert build_buffer(settings_with(3)).capacity_items == 4_000


def test_servers_draw_with_seeds_of_their_own() -> None:
    first, second = (build_buffer(settings_with(2), index=index) for index in range(2))

    assert torch.equal(first.random_state(), build_buffer(settings_with(1)).random_state())
    assert not torch.equal(first.random_state(), second.random_state())
