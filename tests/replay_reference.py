"""What a sample must look like, worked out slowly from the play itself: no rings, no tensors."""

from __future__ import annotations

from dataclasses import dataclass

from common.blocks import FLAG_TERMINATED
from common.specs import DataSpec
from tests.block_factory import PlayedStep

FrameId = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSample:
    stack: list[FrameId]
    next_stack: list[FrameId]
    action: int
    prev_action: int
    next_prev_action: int
    reward_sum: float
    discount: float


def expected_stack(episode: int, time: int, stack: int) -> list[FrameId]:
    """Oldest first; the first frame of the episode stands in for those before it."""
    return [(episode, max(0, time - age)) for age in reversed(range(stack))]


def expected_sample(
    steps: list[PlayedStep], index: int, spec: DataSpec, gamma: float
) -> ExpectedSample:
    reward_sum, discount = 0.0, 1.0
    for last in range(index, index + spec.n_step):
        reward_sum += discount * steps[last].reward
        discount *= gamma
        if steps[last].flag == FLAG_TERMINATED:
            discount = 0.0
        if steps[last].flag:
            break
    item, final = steps[index], steps[last]
    return ExpectedSample(
        stack=expected_stack(item.episode, item.time, spec.stack),
        next_stack=expected_stack(item.episode, final.time + 1, spec.stack),
        action=item.action,
        prev_action=item.prev_action,
        next_prev_action=final.action,
        reward_sum=reward_sum,
        discount=discount,
    )
