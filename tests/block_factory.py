"""Random play cut into valid blocks; each frame shows which episode and time it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from common.blocks import FLAG_TERMINATED, FLAG_TRUNCATED, StepBlock
from common.specs import DataSpec

TINY = DataSpec(height=2, width=4, stack=4, num_actions=7, n_step=5)
SCRIPTED_PATTERN = 3
"""Episodes begin with none, one or two scripted steps, in turn."""
_MARKER_BYTES = 4


@dataclass(frozen=True, slots=True)
class PlayedStep:
    episode: int
    time: int
    action: int
    prev_action: int
    reward: float
    flag: int
    scripted: int


def frame_of(episode: int, time: int, spec: DataSpec) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    """Pixels that can be read back by `frame_identity`."""
    pixels = np.zeros(spec.frame_bytes, dtype=np.uint8)
    pixels[:_MARKER_BYTES] = np.array([episode, time], dtype="<u2").view(np.uint8)
    return pixels


def frame_identity(pixels: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]) -> tuple[int, int]:
    episode, time = np.ascontiguousarray(pixels).reshape(-1)[:_MARKER_BYTES].view("<u2")
    return int(episode), int(time)


def play(
    lengths: list[int], flags: list[int], spec: DataSpec, rng: np.random.Generator
) -> list[PlayedStep]:
    """Episodes of the given lengths, each ended by its flag; 0 leaves the last one open."""
    steps = []
    for episode, (length, flag) in enumerate(zip(lengths, flags, strict=True)):
        prev_action = spec.no_action
        for time in range(length):
            action = int(rng.integers(spec.num_actions))
            # Multiples of 1/8 are exact in float16, so that tests can ask for equality.
            reward = float(rng.integers(-64, 65)) / 8
            end = flag if time == length - 1 else 0
            scripted = int(time < episode % SCRIPTED_PATTERN)
            steps.append(PlayedStep(episode, time, action, prev_action, reward, end, scripted))
            prev_action = action
    return steps


def random_play(num_steps: int, spec: DataSpec, rng: np.random.Generator) -> list[PlayedStep]:
    """Episodes of 1 to 40 steps, short ones often; the last one is left open."""
    lengths: list[int] = []
    while sum(lengths) < num_steps:
        lengths.append(int(rng.choice([1, 2, 3, 5, 8, 40])))
    flags = [int(rng.choice([FLAG_TERMINATED, FLAG_TRUNCATED])) for _ in lengths]
    flags[-1] = 0
    return play(lengths, flags, spec, rng)


def cut_block(steps: list[PlayedStep], first: int, num_items: int, spec: DataSpec) -> StepBlock:
    """The items `first` .. with the look-ahead that they need, cut at an episode's end."""
    last_item = first + num_items - 1
    stop = last_item + 1
    while stop < len(steps) and stop - last_item < spec.n_step and not steps[stop - 1].flag:
        stop += 1
    part = steps[first:stop]
    frames: list[tuple[int, int]] = []
    frame_index, episode_first = [], []
    for step in part:
        if not frames or step.time == 0:
            oldest = max(0, step.time - spec.stack + 1)
            start = len(frames)
            frames += [(step.episode, time) for time in range(oldest, step.time + 1)]
        frame_index.append(len(frames) - 1)
        episode_first.append(start)
        frames.append((step.episode, step.time + 1))
    shape = (len(frames), spec.height, spec.width)
    pixels = np.stack([frame_of(episode, time, spec) for episode, time in frames])
    return StepBlock(
        frames=pixels.reshape(shape),
        actions=np.array([step.action for step in part], dtype=np.uint8),
        rewards=np.array([step.reward for step in part], dtype=np.float32),
        flags=np.array([step.flag for step in part], dtype=np.uint8),
        frame_index=np.array(frame_index, dtype=np.uint16),
        episode_first=np.array(episode_first, dtype=np.uint16),
        prev_actions=np.array([step.prev_action for step in part[:num_items]], dtype=np.uint8),
        priorities=np.ones(num_items, dtype=np.float32),
        scripted=np.array([step.scripted for step in part], dtype=np.uint8),
    )


def cut_blocks(steps: list[PlayedStep], num_items: int, spec: DataSpec) -> list[StepBlock]:
    """All whole blocks of the play; a tail without enough look-ahead is left out."""
    usable = len(steps) - (spec.n_step - 1)
    firsts = range(0, usable - num_items + 1, num_items)
    return [cut_block(steps, first, num_items, spec) for first in firsts]
