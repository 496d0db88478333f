from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.block_builder import BlockBuilder, PlayedStep
from actor.recorder import Recorder
from common.blocks import FLAG_TERMINATED, FLAG_TRUNCATED, U8, StepBlock, validate_block
from common.specs import DataSpec

SPEC = DataSpec(height=2, width=2, stack=3, num_actions=5, n_step=3)
NOTHING = np.zeros(2, dtype=np.float32)


@dataclass
class Seen:
    """What an agent step was taken on, and how it ended."""

    stack: list[int]
    prev_action: int
    action: int
    flag: int


@dataclass
class Play:
    """Frames are numbered; a stack repeats the first frame of its episode."""

    recorder: Recorder
    stored: list[Seen] = field(default_factory=list)
    blocks: list[StepBlock] = field(default_factory=list)
    _next_frame: int = 0

    def episode(self, scripted: list[bool], *, within: bool) -> None:
        """One step for each entry; then the episode terminates."""
        stack = self._begin(within=within)
        prev_action = 4 if within else SPEC.no_action
        for time, is_scripted in enumerate(scripted):
            flag = FLAG_TERMINATED if time == len(scripted) - 1 else 0
            action = (time + len(self.stored)) % SPEC.num_actions
            if not is_scripted:
                goes_on = flag or not scripted[time + 1]
                ends = flag if goes_on else FLAG_TRUNCATED
                self.stored.append(Seen(list(stack), prev_action, action, ends))
            seen, newest = np.stack([frame(number) for number in stack]), self._new_frame()
            self.recorder.record(
                played(action, flag, scripted=is_scripted),
                frame(newest),
                seen=seen,
                prev_action=prev_action,
            )
            stack, prev_action = [*stack[1:], newest], action
            self._collect()

    def flush(self) -> None:
        self.blocks += self.recorder.flush()

    def _begin(self, *, within: bool) -> list[int]:
        first = self._new_frame()
        if within:
            self.recorder.begin(None)
            return [first, self._new_frame(), self._new_frame()]
        self.recorder.begin(frame(first))
        return 3 * [first]

    def _new_frame(self) -> int:
        self._next_frame += 1
        return self._next_frame

    def _collect(self) -> None:
        while (block := self.recorder.take_block()) is not None:
            self.blocks.append(block)


def frame(number: int) -> U8:
    return np.array([number // 256, number % 256, 0, 0], dtype=np.uint8).reshape(2, 2)


def number_of(pixels: U8) -> int:
    return int(pixels[0, 0]) * 256 + int(pixels[0, 1])


def played(action: int, flag: int, *, scripted: bool) -> PlayedStep:
    return PlayedStep(
        action=action,
        reward=0.0,
        flag=flag,
        chosen_quantiles=NOTHING,
        greedy_quantiles=NOTHING,
        scripted=scripted,
    )


def items(blocks: list[StepBlock]) -> list[Seen]:
    found = []
    for block in blocks:
        for row in range(block.num_items):
            newest, oldest = int(block.frame_index[row]), int(block.episode_first[row])
            stack = [max(newest - age, oldest) for age in (2, 1, 0)]
            found.append(
                Seen(
                    [number_of(block.frames[index]) for index in stack],
                    int(block.prev_actions[row]),
                    int(block.actions[row]),
                    int(block.flags[row]),
                )
            )
    return found


episodes = st.lists(
    st.tuples(st.lists(st.booleans(), min_size=1, max_size=12), st.booleans()),
    min_size=1,
    max_size=8,
)


@given(episodes=episodes, block_steps=st.integers(1, 6))
@settings(max_examples=150, deadline=None)
def test_what_is_stored_is_what_the_policy_saw_and_did(
    episodes: list[tuple[list[bool], bool]], block_steps: int
) -> None:
    play = Play(Recorder(BlockBuilder(SPEC, block_steps, 0.9), stores_scripted=False))
    for scripted, within in episodes:
        play.episode(scripted, within=within)
    play.flush()

    for block in play.blocks:
        validate_block(block, SPEC)
        assert not block.scripted.any()
    assert items(play.blocks) == play.stored


def test_where_scripted_steps_are_stored_they_are_marked_and_nothing_is_cut() -> None:
    play = Play(Recorder(BlockBuilder(SPEC, 8, 0.9)))
    play.episode([True, True, False, True, False], within=False)
    play.flush()

    (block,) = play.blocks
    validate_block(block, SPEC)
    assert block.scripted.tolist() == [1, 1, 0, 1, 0]
    assert block.flags.tolist() == [0, 0, 0, 0, FLAG_TERMINATED]
    # Each frame once: the first, and one after every step.
    assert block.num_frames == 6


def test_an_episode_that_was_scripted_to_its_end_leaves_nothing() -> None:
    play = Play(Recorder(BlockBuilder(SPEC, 2, 0.9), stores_scripted=False))
    play.episode(4 * [True], within=False)
    play.flush()

    assert play.blocks == []
