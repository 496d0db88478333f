"""Each rule of a block, broken one at a time, is refused with its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from common.blocks import (
    FLAG_TERMINATED,
    FLAG_TRUNCATED,
    MAX_BLOCK_ITEMS,
    StepBlock,
    max_block_frames,
    validate_block,
)
from common.errors import BadMessage
from common.specs import DataSpec
from tests.block_factory import TINY, cut_block, play, random_play
from tests.message_factory import example_arrays

SPEC = TINY


def block(**changes: Any) -> StepBlock:
    """Eight items of an open episode with four steps of look-ahead."""
    return StepBlock(**{**example_arrays("step_block"), **changes})


def changed(name: str, index: int, value: float) -> StepBlock:
    array = getattr(block(), name).copy()
    array[index] = value
    return block(**{name: array})


def reason_of(bad: StepBlock) -> str:
    with pytest.raises(BadMessage) as caught:
        validate_block(bad, SPEC)
    return caught.value.reason


def test_the_example_is_valid() -> None:
    validate_block(block(), SPEC)


@pytest.mark.parametrize("seed", range(20))
def test_blocks_cut_from_random_play_are_valid(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = random_play(200, SPEC, rng)

    first = int(rng.integers(100))
    validate_block(cut_block(steps, first, int(rng.integers(1, 60)), SPEC), SPEC)


@pytest.mark.parametrize("flag", [FLAG_TERMINATED, FLAG_TRUNCATED])
def test_an_episode_end_makes_up_for_missing_look_ahead(flag: int) -> None:
    steps = play([8], [flag], SPEC, np.random.default_rng(1))

    validate_block(cut_block(steps, 0, 8, SPEC), SPEC)


@pytest.mark.parametrize(
    "name",
    [
        "frames",
        "actions",
        "rewards",
        "flags",
        "frame_index",
        "episode_first",
        "prev_actions",
        "priorities",
        "scripted",
    ],
)
def test_each_array_must_have_its_type(name: str) -> None:
    array = getattr(block(), name)

    assert reason_of(block(**{name: array.astype(np.int64)})) == "block_shape"


@pytest.mark.parametrize("name", ["rewards", "flags", "frame_index", "episode_first", "scripted"])
@pytest.mark.parametrize("length", [11, 13])
def test_each_step_array_must_have_one_entry_per_step(name: str, length: int) -> None:
    array = np.resize(getattr(block(), name), length)

    assert reason_of(block(**{name: array})) == "block_shape"


def test_priorities_must_have_one_entry_per_item() -> None:
    assert reason_of(block(priorities=block().priorities[:7])) == "block_shape"


@pytest.mark.parametrize("shape", [(13, 4, 2), (13, 8), (13, 2, 4, 1), (26, 2, 2)])
def test_frames_must_have_the_shape_of_the_spec(shape: tuple[int, ...]) -> None:
    frames = np.resize(block().frames, shape)

    assert reason_of(block(frames=frames)) == "block_shape"


@pytest.mark.parametrize("name", ["actions", "prev_actions"])
def test_flat_arrays_must_be_flat(name: str) -> None:
    array = getattr(block(), name)

    assert reason_of(block(**{name: array[:, None]})) == "block_shape"


def test_a_block_has_at_least_one_item() -> None:
    assert reason_of(block(prev_actions=np.empty(0, np.uint8))) == "block_items"


def test_a_block_has_a_bounded_number_of_items() -> None:
    assert reason_of(block(prev_actions=np.zeros(MAX_BLOCK_ITEMS + 1, np.uint8))) == "block_items"


def test_there_are_no_fewer_steps_than_items() -> None:
    assert reason_of(block(prev_actions=np.zeros(13, np.uint8))) == "block_steps"


def test_there_is_no_more_look_ahead_than_returns_need() -> None:
    assert reason_of(block(prev_actions=np.zeros(7, np.uint8))) == "block_steps"


@pytest.mark.parametrize("count", [0, 1, max_block_frames(12, SPEC) + 1])
def test_the_number_of_frames_is_bounded(count: int) -> None:
    frames = np.zeros((count, SPEC.height, SPEC.width), np.uint8)

    assert reason_of(block(frames=frames)) == "block_frames"


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("actions", SPEC.num_actions, "block_action"),
        ("actions", 255, "block_action"),
        ("prev_actions", SPEC.no_action + 1, "block_action"),
        ("flags", 3, "block_flags"),
        ("flags", 255, "block_flags"),
        ("scripted", 2, "block_scripted"),
        ("rewards", np.nan, "block_reward"),
        ("rewards", np.inf, "block_reward"),
        ("rewards", -np.inf, "block_reward"),
        ("rewards", 10_001, "block_reward"),
        ("rewards", -10_001, "block_reward"),
        ("priorities", np.nan, "block_priority"),
        ("priorities", np.inf, "block_priority"),
        ("priorities", -0.1, "block_priority"),
        ("priorities", 1e38, "block_priority"),
    ],
)
@pytest.mark.parametrize("index", [0, 3, -1])
def test_one_value_out_of_range_spoils_the_block(
    name: str, value: float, reason: str, index: int
) -> None:
    assert reason_of(changed(name, index, value)) == reason


def test_the_limits_themselves_are_accepted() -> None:
    validate_block(changed("rewards", 2, 1e4), SPEC)
    validate_block(changed("rewards", 2, -1e4), SPEC)
    validate_block(changed("priorities", 2, 0), SPEC)
    validate_block(changed("priorities", 2, 1e6), SPEC)
    validate_block(changed("prev_actions", 0, SPEC.no_action), SPEC)


@pytest.mark.parametrize(
    ("name", "index", "value", "detail"),
    [
        ("episode_first", 0, 1, "begins after its step"),
        ("episode_first", 5, 65_535, "begins after its step"),
        ("frame_index", 11, 12, "not one frame after"),
        ("frame_index", 4, 65_535, "not one frame after"),
        ("frame_index", 5, 4, "not consecutive"),
        ("frame_index", 5, 6, "not consecutive"),
        ("episode_first", 5, 2, "not consecutive"),
        ("flags", 4, FLAG_TERMINATED, "not consecutive"),
        ("flags", 4, FLAG_TRUNCATED, "not consecutive"),
    ],
)
def test_frames_must_follow_the_steps(name: str, index: int, value: int, detail: str) -> None:
    with pytest.raises(BadMessage, match=detail) as caught:
        validate_block(changed(name, index, value), SPEC)

    assert caught.value.reason == "block_frame_index"


def test_frames_before_the_first_stack_are_refused() -> None:
    moved = block()
    frames = np.concatenate([moved.frames[:1]] * SPEC.stack + [moved.frames])
    shift = np.uint16(SPEC.stack)
    bad = replace(
        moved,
        frames=frames,
        frame_index=moved.frame_index + shift,
        episode_first=moved.episode_first + shift,
    )

    with pytest.raises(BadMessage, match="unused frames at the start"):
        validate_block(bad, SPEC)


def test_frames_after_the_last_step_are_refused() -> None:
    good = block()

    bad = replace(good, frames=np.concatenate([good.frames, good.frames[:1]]))

    assert reason_of(bad) == "block_frame_index"


def test_a_new_episode_must_not_show_frames_of_the_old_one() -> None:
    steps = play([4, 12], [FLAG_TERMINATED, 0], SPEC, np.random.default_rng(3))
    good = cut_block(steps, 0, 8, SPEC)
    first = good.episode_first.copy()
    first[4:] = 0

    assert reason_of(replace(good, episode_first=first)) == "block_frame_index"


def test_a_last_return_that_is_cut_is_refused() -> None:
    whole = block()
    names = ("actions", "rewards", "flags", "frame_index", "episode_first", "scripted")
    short = replace(
        whole,
        frames=whole.frames[:-1],
        **{name: getattr(whole, name)[:-1] for name in names},
    )

    assert reason_of(short) == "block_lookahead"


def test_every_step_may_begin_with_a_stack_of_its_own() -> None:
    steps = np.arange(12, dtype=np.uint16) * np.uint16(SPEC.stack + 1)
    crowded = block(
        frames=np.zeros((max_block_frames(12, SPEC), SPEC.height, SPEC.width), np.uint8),
        flags=np.full(12, FLAG_TRUNCATED, np.uint8),
        frame_index=steps + np.uint16(SPEC.stack - 1),
        episode_first=steps,
    )

    validate_block(crowded, SPEC)


@pytest.mark.parametrize(("seen_before", "is_valid"), [(1, True), (2, True), (3, False)])
def test_an_episode_may_begin_with_the_stack_of_an_earlier_moment_and_no_more(
    seen_before: int, is_valid: bool
) -> None:
    spec = DataSpec(height=2, width=2, stack=3, num_actions=3, n_step=1)
    first = 2  # after frames 0 and 1 of the episode that ended
    block = StepBlock(
        frames=np.zeros((first + seen_before + 2, 2, 2), dtype=np.uint8),
        actions=np.zeros(2, dtype=np.uint8),
        rewards=np.zeros(2, dtype=np.float32),
        flags=np.array([FLAG_TERMINATED, 0], dtype=np.uint8),
        frame_index=np.array([0, first + seen_before], dtype=np.uint16),
        episode_first=np.array([0, first], dtype=np.uint16),
        prev_actions=np.zeros(2, dtype=np.uint8),
        priorities=np.ones(2, dtype=np.float32),
        scripted=np.zeros(2, dtype=np.uint8),
    )

    if is_valid:
        validate_block(block, spec)
    else:
        with pytest.raises(BadMessage, match="consecutive"):
            validate_block(block, spec)
