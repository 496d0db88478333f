"""How the benchmark `replay` is run, and settings under which nobody waits for the balance."""

from __future__ import annotations

from dataclasses import dataclass, replace

from common.config import ActorSettings, EnvSettings, LearnerSettings, ReplaySettings, Settings
from launch.benchmarks.blocks import BLOCK_ITEMS

NO_BALANCE_AGENT_STEPS = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    capacity: int = 100_000
    batch_size: int = 512
    senders: int = 4
    incoming_agent_steps_per_s: float = 1_000.0
    """While batches go out."""
    window_s: float = 4.0
    rounds: int = 5
    frame_side: int = 84
    block_steps: int = BLOCK_ITEMS

    @property
    def settings(self) -> Settings:
        base = unbalanced_settings(self.senders, self.capacity, self.frame_side)
        return replace(
            base,
            learner=LearnerSettings(batch_size=self.batch_size),
            actor=replace(base.actor, block_steps=self.block_steps),
        )


def unbalanced_settings(actors: int, capacity: int, frame_side: int) -> Settings:
    """Neither side ever waits for the other: each is measured by itself."""
    base = Settings()
    return replace(
        base,
        run=replace(base.run, device="cpu"),
        env=EnvSettings(size=frame_side),
        actor=ActorSettings(actors=actors, block_steps=BLOCK_ITEMS),
        replay=ReplaySettings(
            capacity=capacity,
            learning_starts=1,
            balance_slack_agent_steps=NO_BALANCE_AGENT_STEPS,
        ),
    )
