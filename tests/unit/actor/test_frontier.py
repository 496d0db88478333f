from __future__ import annotations

from collections import Counter
from typing import cast

from actor.env.episode import EnvSnapshot
from actor.frontier import (
    LEAD_STRETCHES,
    MAX_AGE_EPISODES,
    RECENT_LOSSES,
    STRETCH_PIXELS,
    Frontier,
)

SNAPSHOT = cast(EnvSnapshot, object())


def full_frontier(share: float) -> Frontier:
    frontier = Frontier(share, seed=1, kind="far")
    for stretch in range(10):
        frontier.keep("1-1", stretch, SNAPSHOT, prev_action=stretch)
    return frontier


def test_the_share_of_episodes_begins_on_the_frontier_mostly_far_out() -> None:
    frontier = full_frontier(0.5)

    drawn = [frontier.draw("1-1") for _ in range(MAX_AGE_EPISODES)]
    begun = Counter(moment.prev_action for moment in drawn if moment is not None)

    assert 70 < sum(begun.values()) < 130
    far = sum(count for stretch, count in begun.items() if stretch >= 5)
    assert far > 0.7 * sum(begun.values())
    assert far < sum(begun.values())


def test_without_a_share_nothing_is_kept_or_begun() -> None:
    frontier = full_frontier(0.0)

    assert not frontier.wants(10_000, -1)
    assert all(frontier.draw("1-1") is None for _ in range(50))


def test_a_stretch_beyond_the_newest_is_wanted() -> None:
    frontier = Frontier(0.5, seed=1)

    assert not frontier.wants(2 * STRETCH_PIXELS - 1, newest_stretch=1)
    assert frontier.wants(2 * STRETCH_PIXELS, newest_stretch=1)


def test_the_newest_moment_of_a_stretch_is_kept() -> None:
    frontier = Frontier(0.95, seed=1, kind="far")
    frontier.keep("1-1", 3, SNAPSHOT, prev_action=1)
    frontier.keep("1-1", 3, SNAPSHOT, prev_action=2)

    drawn = {moment.prev_action for _ in range(40) if (moment := frontier.draw("1-1")) is not None}

    assert drawn == {2}


def test_stages_do_not_share_moments_and_old_ones_are_forgotten() -> None:
    frontier = full_frontier(0.95)
    elsewhere = [frontier.draw("1-2") for _ in range(MAX_AGE_EPISODES)]

    assert set(elsewhere) == {None}
    assert all(frontier.draw("1-1") is None for _ in range(50))


def test_practice_begins_shortly_before_the_places_of_recent_losses() -> None:
    frontier = Frontier(0.95, seed=1)
    for stretch in range(40):
        frontier.keep("1-1", stretch, SNAPSHOT, prev_action=stretch)
    for pixels in (20 * STRETCH_PIXELS, 20 * STRETCH_PIXELS + 9, 35 * STRETCH_PIXELS):
        frontier.note_loss("1-1", pixels)

    drawn = [frontier.draw("1-1") for _ in range(MAX_AGE_EPISODES)]
    begun = Counter(moment.prev_action for moment in drawn if moment is not None)

    near = {*range(20 - LEAD_STRETCHES, 21), *range(35 - LEAD_STRETCHES, 36)}
    assert set(begun) == near
    assert sum(begun[stretch] for stretch in range(21)) > 1.5 * begun.total() / 3


def test_old_losses_are_forgotten_and_without_one_the_true_start_is_taken() -> None:
    frontier = Frontier(0.95, seed=1)
    for stretch in range(40):
        frontier.keep("1-1", stretch, SNAPSHOT, prev_action=stretch)
    assert frontier.draw("1-1") is None
    frontier.note_loss("1-1", 10 * STRETCH_PIXELS)
    for _ in range(RECENT_LOSSES):
        frontier.note_loss("1-1", 39 * STRETCH_PIXELS)

    begun = {moment.prev_action for _ in range(99) if (moment := frontier.draw("1-1")) is not None}

    assert min(begun) >= 39 - LEAD_STRETCHES
