from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from actor.block_builder import BlockBuilder, PlayedStep
from common.blocks import (
    F32,
    FLAG_TERMINATED,
    FLAG_TRUNCATED,
    StepBlock,
    max_block_frames,
    validate_block,
)
from common.specs import DataSpec
from tests import block_factory
from tests.block_factory import TINY, frame_identity, frame_of, play
from tests.replay_reference import expected_stack

GAMMA = 0.9
NUM_QUANTILES = 3


@dataclass(frozen=True, slots=True)
class Game:
    """A play, how it is cut, and what the network thought at each step."""

    spec: DataSpec
    block_steps: int
    steps: list[block_factory.PlayedStep]
    chosen: F32
    greedy: F32


@dataclass(frozen=True, slots=True)
class Emitted:
    block: StepBlock
    after_step: int
    """Index of the step that completed it; the number of steps when it came from `flush`."""


@st.composite
def games(draw: st.DrawFn) -> Game:
    spec = DataSpec(
        height=2,
        width=4,
        num_actions=7,
        stack=draw(st.integers(1, 4)),
        n_step=draw(st.integers(1, 7)),
    )
    lengths = draw(st.lists(st.integers(1, 14), min_size=1, max_size=7))
    ends = st.sampled_from([FLAG_TERMINATED, FLAG_TRUNCATED])
    flags = [draw(ends) for _ in lengths]
    flags[-1] = draw(st.sampled_from([0, FLAG_TERMINATED, FLAG_TRUNCATED]))
    return make_game(lengths, flags, spec, draw(st.integers(1, 10)))


def make_game(lengths: list[int], flags: list[int], spec: DataSpec, block_steps: int) -> Game:
    rng = np.random.default_rng(sum(lengths))
    steps = play(lengths, flags, spec, rng)
    chosen, greedy = rng.normal(0, 2, (2, len(steps), NUM_QUANTILES)).astype(np.float32)
    return Game(spec, block_steps, steps, chosen, greedy)


def square(
    episode: int, time: int, spec: DataSpec
) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return frame_of(episode, time, spec).reshape(spec.height, spec.width)


def feed(builder: BlockBuilder, game: Game, index: int) -> None:
    step = game.steps[index]
    if step.time == 0:
        builder.begin_episode(square(step.episode, 0, game.spec))
    builder.add_step(
        PlayedStep(
            action=step.action,
            reward=step.reward,
            flag=step.flag,
            chosen_quantiles=game.chosen[index],
            greedy_quantiles=game.greedy[index],
            scripted=bool(step.scripted),
        ),
        square(step.episode, step.time + 1, game.spec),
    )


def emit_all(game: Game) -> list[Emitted]:
    builder = BlockBuilder(game.spec, game.block_steps, GAMMA)
    emitted = []
    for index in range(len(game.steps)):
        feed(builder, game, index)
        while (block := builder.take_block()) is not None:
            emitted.append(Emitted(block, index))
        pending, frames = len(builder._pending), len(builder._frames)
        assert pending < game.block_steps + game.spec.n_step
        assert frames <= max_block_frames(pending + 1, game.spec)
    emitted += [Emitted(block, len(game.steps)) for block in builder.flush()]
    assert builder.flush() == []
    return emitted


def items_of(emitted: list[Emitted], field: str) -> list[float]:
    parts = [getattr(one.block, field)[: one.block.num_items] for one in emitted]
    return [float(value) for part in parts for value in part]


@given(games())
@settings(max_examples=60, deadline=None)
def test_every_step_is_an_item_of_one_block_in_order(game: Game) -> None:
    emitted = emit_all(game)

    for one in emitted:
        validate_block(one.block, game.spec)
        assert one.block.num_items <= game.block_steps
    assert items_of(emitted, "actions") == [step.action for step in game.steps]
    assert items_of(emitted, "rewards") == [step.reward for step in game.steps]
    assert items_of(emitted, "prev_actions") == [step.prev_action for step in game.steps]
    assert items_of(emitted, "scripted") == [step.scripted for step in game.steps]
    flags = [step.flag for step in game.steps]
    assert items_of(emitted, "flags") == [*flags[:-1], flags[-1] or FLAG_TRUNCATED]


@given(games())
@settings(max_examples=40, deadline=None)
def test_every_stack_shows_the_frames_of_its_own_episode(game: Game) -> None:
    first = 0
    for one in emit_all(game):
        block = one.block
        for row in range(block.num_steps):
            step, newest = game.steps[first + row], int(block.frame_index[row])
            oldest = int(block.episode_first[row])
            stack = [max(newest - age, oldest) for age in reversed(range(game.spec.stack))]
            assert [frame_identity(block.frames[i]) for i in stack] == expected_stack(
                step.episode, step.time, game.spec.stack
            )
            assert frame_identity(block.frames[newest + 1]) == (step.episode, step.time + 1)
        first += block.num_items


@given(games())
@settings(max_examples=40, deadline=None)
def test_blocks_come_as_soon_as_their_last_return_is_known(game: Game) -> None:
    first = 0
    for one in emit_all(game):
        last_item = first + one.block.num_items - 1
        is_full = one.block.num_items == game.block_steps
        known_at = step_that_completes(game, last_item) if is_full else len(game.steps)
        assert one.after_step == min(known_at, len(game.steps))
        first = last_item + 1


def step_that_completes(game: Game, item: int) -> int:
    """The step after which return and bootstrap value of the item are known."""
    for index in range(item, min(item + game.spec.n_step, len(game.steps))):
        if game.steps[index].flag:
            return index
    return item + game.spec.n_step


@given(games())
@settings(max_examples=40, deadline=None)
def test_priorities_are_the_quantile_loss_of_the_n_step_target(game: Game) -> None:
    emitted = emit_all(game)

    expected = [slow_priority(game, index) for index in range(len(game.steps))]
    np.testing.assert_allclose(items_of(emitted, "priorities"), expected, rtol=2e-5, atol=1e-6)


def slow_priority(game: Game, item: int) -> float:
    """Plain loops over float64, from the play itself."""
    total, last = 0.0, len(game.steps) - 1
    for power in range(game.spec.n_step):
        step = game.steps[item + power]
        total += GAMMA**power * step.reward
        flag = step.flag or (FLAG_TRUNCATED if item + power == last else 0)
        if flag:
            discount = GAMMA ** (power + 1) if flag == FLAG_TRUNCATED else 0.0
            bootstrap = game.greedy[item + power]
            break
    else:
        discount, bootstrap = GAMMA**game.spec.n_step, game.greedy[item + game.spec.n_step]
    targets = [total + discount * float(value) for value in bootstrap]
    return slow_quantile_huber(game.chosen[item], targets)


def slow_quantile_huber(predicted: F32, targets: list[float]) -> float:
    loss = 0.0
    for i, value in enumerate(predicted):
        tau = (i + 0.5) / len(predicted)
        for target in targets:
            error = target - float(value)
            huber = error**2 / 2 if abs(error) <= 1 else abs(error) - 0.5
            loss += abs(tau - (error < 0)) * huber / len(targets)
    return loss


def test_flush_cuts_the_running_episode_as_a_truncation() -> None:
    game = make_game([6], [0], TINY, 4)
    builder = BlockBuilder(TINY, 4, GAMMA)
    for index in range(6):
        feed(builder, game, index)

    first, second = builder.flush()

    assert first.num_items == 4
    assert second.flags.tolist() == [0, FLAG_TRUNCATED]


def test_only_the_first_block_is_shorter_where_asked() -> None:
    game = make_game([20], [FLAG_TERMINATED], TINY, 4)
    builder = BlockBuilder(TINY, 4, GAMMA, first_block_steps=2)
    sizes = []
    for index in range(20):
        feed(builder, game, index)
        while (block := builder.take_block()) is not None:
            sizes.append(block.num_items)

    assert sizes == [2, 4, 4, 4, 4]


def test_flush_leaves_an_ended_episode_as_it_ended() -> None:
    game = make_game([3], [FLAG_TERMINATED], TINY, 4)
    builder = BlockBuilder(TINY, 4, GAMMA)
    for index in range(3):
        feed(builder, game, index)

    (block,) = builder.flush()

    assert block.flags.tolist() == [0, 0, FLAG_TERMINATED]


def test_flush_of_nothing_is_nothing() -> None:
    builder = BlockBuilder(TINY, 4, GAMMA)
    builder.begin_episode(square(0, 0, TINY))

    assert builder.flush() == []


def test_memory_stays_bounded_over_a_long_play_of_one_step_episodes() -> None:
    spec = DataSpec(height=2, width=4, stack=4, num_actions=7, n_step=3)
    game = make_game([1] * 500, [FLAG_TERMINATED] * 500, spec, 8)

    emitted = emit_all(game)

    assert [one.block.num_items for one in emitted] == [8] * 62 + [4]


def test_a_start_within_an_episode_keeps_the_frames_that_were_seen_there() -> None:
    spec = DataSpec(height=2, width=2, stack=3, num_actions=3, n_step=1)
    builder = BlockBuilder(spec, block_steps=2, gamma=0.9)
    frames = np.arange(6, dtype=np.uint8)[:, None, None] * np.ones((1, 2, 2), dtype=np.uint8)
    quantiles = np.zeros(2, dtype=np.float32)

    builder.begin_within_episode(frames[:3], prev_action=2)
    for action, frame in ((0, 3), (1, 4)):
        step = PlayedStep(
            action=action,
            reward=0.0,
            flag=0,
            chosen_quantiles=quantiles,
            greedy_quantiles=quantiles,
        )
        builder.add_step(step, frames[frame])
    (block,) = builder.flush()

    # The first step was taken with frames 0, 1 and 2 in sight, after action 2.
    assert block.frames[:, 0, 0].tolist() == [0, 1, 2, 3, 4]
    assert block.frame_index.tolist() == [2, 3]
    assert block.episode_first.tolist() == [0, 0]
    assert block.prev_actions.tolist() == [2, 0]
