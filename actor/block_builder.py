"""Cuts the stream of steps of one environment into self-contained blocks.

No sockets, no network: frames and steps in, `StepBlock`s out. A block is cut one step later than
its returns need, because the value of its last bootstrap state is known only then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from common.blocks import F32, FLAG_TRUNCATED, U8, StepBlock
from common.quantiles import quantile_huber_loss, quantile_targets
from common.specs import DataSpec


@dataclass(slots=True, kw_only=True)
class PlayedStep:
    """One agent step, with what the network thought before it was taken."""

    action: int
    reward: float
    flag: int
    """0, FLAG_TERMINATED or FLAG_TRUNCATED."""
    chosen_quantiles: F32
    """[N] of the action that was taken."""
    greedy_quantiles: F32
    """[N] of the best action: the value of the state."""
    scripted: bool = False
    """A script chose the action, whatever the policy thought."""


@dataclass(slots=True, kw_only=True)
class _Pending:
    step: PlayedStep
    frame: int
    """Newest frame of the observation, counted since the builder was made."""
    episode_first: int
    prev_action: int


class BlockBuilder:
    """Call `begin_episode`, then `add_step` until the episode ends; take blocks when due."""

    def __init__(
        self,
        spec: DataSpec,
        block_steps: int,
        gamma: float,
        *,
        first_block_steps: int | None = None,
    ) -> None:
        """A shorter first block sets environments out of step, so that blocks come evenly."""
        self._spec = spec
        self._block_steps = block_steps
        self._next_block_steps = first_block_steps or block_steps
        self._gammas = gamma ** np.arange(spec.n_step + 1, dtype=np.float64)
        self._frames: list[U8] = []
        self._frames_dropped = 0
        self._pending: list[_Pending] = []
        self._episode_first = 0
        self._prev_action = spec.no_action

    def begin_episode(self, first_frame: U8) -> None:
        self._frames.append(first_frame)
        self._episode_first = self._newest_frame
        self._prev_action = self._spec.no_action

    def begin_within_episode(self, frames: U8, prev_action: int) -> None:
        """Go on from a moment at which these frames were seen, oldest first [stack, H, W]."""
        self.begin_episode(frames[0])
        self._frames.extend(frames[1:])
        self._prev_action = prev_action

    def add_step(self, step: PlayedStep, next_frame: U8) -> None:
        """Record a step and the frame that it led to, also when that ends the episode."""
        self._pending.append(
            _Pending(
                step=step,
                frame=self._newest_frame,
                episode_first=self._episode_first,
                prev_action=self._prev_action,
            )
        )
        self._frames.append(next_frame)
        self._prev_action = step.action

    def take_block(self) -> StepBlock | None:
        """The next block if it is complete."""
        items, n_step = self._next_block_steps, self._spec.n_step
        if len(self._pending) < items:
            return None
        end = self._first_end(items - 1, items + n_step - 1)
        if end is None and len(self._pending) < items + n_step:
            return None
        return self._cut(items, items + n_step - 1 if end is None else end + 1)

    def truncate(self) -> None:
        """Cut the running episode here; its newest step is in no block yet."""
        if self._pending and self._pending[-1].step.flag == 0:
            self._pending[-1].step.flag = FLAG_TRUNCATED

    def flush(self) -> list[StepBlock]:
        """Everything that is left; the running episode is cut here, as a truncation."""
        self.truncate()
        blocks = []
        while self._pending:
            items = min(self._block_steps, len(self._pending))
            end = self._first_end(items - 1, items + self._spec.n_step - 1)
            num_steps = items + self._spec.n_step - 1 if end is None else end + 1
            blocks.append(self._cut(items, num_steps))
        return blocks

    @property
    def _newest_frame(self) -> int:
        return self._frames_dropped + len(self._frames) - 1

    def _first_end(self, start: int, stop: int) -> int | None:
        """The first of these steps at which an episode ended."""
        for index in range(start, min(stop, len(self._pending))):
            if self._pending[index].step.flag:
                return index
        return None

    def _cut(self, num_items: int, num_steps: int) -> StepBlock:
        rows = self._pending[:num_steps]
        oldest = max(rows[0].episode_first, rows[0].frame - self._spec.stack + 1)
        newest = rows[-1].frame + 1
        frames = self._frames[oldest - self._frames_dropped : newest + 1 - self._frames_dropped]
        block = StepBlock(
            frames=np.stack(frames),
            actions=np.array([row.step.action for row in rows], dtype=np.uint8),
            rewards=np.array([row.step.reward for row in rows], dtype=np.float32),
            flags=np.array([row.step.flag for row in rows], dtype=np.uint8),
            frame_index=np.array([row.frame - oldest for row in rows], dtype=np.uint16),
            episode_first=np.array(
                [max(row.episode_first - oldest, 0) for row in rows], dtype=np.uint16
            ),
            prev_actions=np.array([row.prev_action for row in rows[:num_items]], dtype=np.uint8),
            priorities=self._priorities(num_items),
            scripted=np.array([row.step.scripted for row in rows], dtype=np.uint8),
        )
        self._forget(num_items)
        return block

    def _forget(self, num_items: int) -> None:
        """Drop the items and the frames that no later block can need."""
        del self._pending[:num_items]
        self._next_block_steps = self._block_steps
        if self._pending:
            first = self._pending[0]
            keep = max(first.episode_first, first.frame - self._spec.stack + 1)
        else:
            keep = max(self._episode_first, self._newest_frame - self._spec.stack + 1)
        del self._frames[: keep - self._frames_dropped]
        self._frames_dropped = keep

    def _priorities(self, num_items: int) -> F32:
        """The quantile loss of each item under the network that played it.

        A truncated episode bootstraps from the last state that was acted on: its final state was
        never shown to the network, and the learner corrects the priority at the first sample.
        """
        returns, discounts, bootstrap = [], [], []
        for index in range(num_items):
            total, discount, quantiles = self._outlook(index)
            returns.append(total)
            discounts.append(discount)
            bootstrap.append(quantiles)
        chosen = [row.step.chosen_quantiles for row in self._pending[:num_items]]
        targets = quantile_targets(
            torch.tensor(returns, dtype=torch.float32),
            torch.tensor(discounts, dtype=torch.float32),
            torch.from_numpy(np.stack(bootstrap)),
        )
        loss = quantile_huber_loss(torch.from_numpy(np.stack(chosen)), targets)
        priorities: F32 = loss.numpy()
        return priorities

    def _outlook(self, index: int) -> tuple[float, float, F32]:
        """Return, discount and bootstrap quantiles of one item."""
        window = self._pending[index : index + self._spec.n_step]
        total = 0.0
        for power, row in enumerate(window):
            total += float(self._gammas[power]) * row.step.reward
            if row.step.flag:
                truncated = row.step.flag == FLAG_TRUNCATED
                discount = float(self._gammas[power + 1]) if truncated else 0.0
                return total, discount, row.step.greedy_quantiles
        state = self._pending[index + self._spec.n_step]
        return total, float(self._gammas[self._spec.n_step]), state.step.greedy_quantiles
