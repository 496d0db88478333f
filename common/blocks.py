"""A step block: consecutive agent steps of one environment, complete in itself.

Terms. A block has `num_items` steps that can be sampled (T), followed by look-ahead steps (L, at
most n - 1) that only serve the returns of the last items. Steps of an episode own consecutive
frames: the step with newest frame i leads to frame i + 1, which is always in the block.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from common.errors import BadMessage
from common.specs import DataSpec

FLAG_TERMINATED = 1
"""The episode ended by the rules of the game: the return does not bootstrap."""
FLAG_TRUNCATED = 2
"""The episode was cut (time limit, stop): the return bootstraps from the final frame."""
MAX_BLOCK_ITEMS = 1024
MAX_ABS_REWARD = 1e4
MAX_PRIORITY = 1e6

U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
F32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepBlock:
    """The arrays of one block; S = T + L steps, F frames. `validate_block` holds the invariants."""

    frames: U8
    """[F, H, W] gray frames, each once, in the order in which they were seen."""
    actions: U8
    """[S] index into the action set."""
    rewards: F32
    """[S] rewards as the environment gave them, unclipped, with what shaping added."""
    flags: U8
    """[S] 0, FLAG_TERMINATED or FLAG_TRUNCATED."""
    frame_index: U16
    """[S] the newest frame of the observation that the action was chosen on."""
    episode_first: U16
    """[S] the oldest frame that a stack of this step may show; older ones repeat it."""
    prev_actions: U8
    """[T] the action before each item, `spec.no_action` at an episode's start."""
    priorities: F32
    """[T] initial priorities, computed by the actor: |error| before the exponent alpha."""
    scripted: U8
    """[S] 1 where a script chose the action and no policy did, else 0."""

    @property
    def num_items(self) -> int:
        return len(self.prev_actions)

    @property
    def num_steps(self) -> int:
        return len(self.actions)

    @property
    def num_frames(self) -> int:
        return len(self.frames)


def max_block_frames(num_steps: int, spec: DataSpec) -> int:
    """Most frames that a block can need: each step may begin with a stack of its own and end it."""
    return num_steps * (spec.stack + 1)


def _require(condition: bool, reason: str, detail: str = "") -> None:
    if not condition:
        raise BadMessage(reason, detail)


def validate_block(block: StepBlock, spec: DataSpec) -> None:
    """Raise `BadMessage` unless every sample that can be drawn from the block is well defined."""
    _validate_shapes(block, spec)
    _validate_values(block, spec)
    _validate_frame_order(block, spec)
    _validate_lookahead(block, spec)


def _validate_shapes(block: StepBlock, spec: DataSpec) -> None:
    items, steps, frames = block.num_items, block.num_steps, block.num_frames
    _require(1 <= items <= MAX_BLOCK_ITEMS, "block_items", f"got {items}")
    _require(items <= steps <= items + spec.n_step - 1, "block_steps", f"{steps} for {items} items")
    expected = {
        "frames": (np.uint8, (frames, spec.height, spec.width)),
        "actions": (np.uint8, (steps,)),
        "rewards": (np.float32, (steps,)),
        "flags": (np.uint8, (steps,)),
        "frame_index": (np.uint16, (steps,)),
        "episode_first": (np.uint16, (steps,)),
        "prev_actions": (np.uint8, (items,)),
        "priorities": (np.float32, (items,)),
        "scripted": (np.uint8, (steps,)),
    }
    for name, (dtype, shape) in expected.items():
        array = getattr(block, name)
        good = array.dtype == dtype and array.shape == shape
        _require(good, "block_shape", f"{name}: expected {shape}, got {array.shape} {array.dtype}")
    _require(1 < frames <= max_block_frames(steps, spec), "block_frames", f"got {frames}")


def _validate_values(block: StepBlock, spec: DataSpec) -> None:
    _require(bool((block.actions < spec.num_actions).all()), "block_action")
    _require(bool((block.prev_actions <= spec.num_actions).all()), "block_action", "previous")
    _require(bool((block.flags <= FLAG_TRUNCATED).all()), "block_flags")
    _require(bool((block.scripted <= 1).all()), "block_scripted")
    # A NaN fails both comparisons, so one test refuses NaN, infinity and nonsense alike.
    _require(bool((np.abs(block.rewards) <= MAX_ABS_REWARD).all()), "block_reward")
    fine = (block.priorities >= 0) & (block.priorities <= MAX_PRIORITY)
    _require(bool(fine.all()), "block_priority")


def _validate_frame_order(block: StepBlock, spec: DataSpec) -> None:
    newest = block.frame_index.astype(np.int64)
    first = block.episode_first.astype(np.int64)
    _require(bool((first <= newest).all()), "block_frame_index", "an episode begins after its step")
    _require(int(newest.max()) + 2 == block.num_frames, "block_frame_index", "not one frame after")
    _require(int(newest[0]) < spec.stack, "block_frame_index", "unused frames at the start")
    ended = block.flags[:-1] != 0
    # Within an episode frames follow one another. After its final frame the next one starts fresh,
    # with one frame, or with the stack of a moment from which an earlier one is played on.
    seen = newest[1:] - first[1:]
    goes_on = (newest[1:] == newest[:-1] + 1) & (first[1:] == first[:-1])
    begins = (first[1:] == newest[:-1] + 2) & (seen < spec.stack)
    fits = np.where(ended, begins, goes_on)
    _require(bool(fits.all()), "block_frame_index", "steps are not consecutive")


def _validate_lookahead(block: StepBlock, spec: DataSpec) -> None:
    complete = block.num_steps == block.num_items + spec.n_step - 1
    ended = bool((block.flags[block.num_items - 1 :] != 0).any())
    _require(complete or ended, "block_lookahead", "the last return is cut without an episode end")
