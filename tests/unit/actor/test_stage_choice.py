from __future__ import annotations

from collections import Counter

from actor.stage_choice import StageChoice


def test_stages_are_drawn_by_their_shares() -> None:
    choice = StageChoice(("1-1", "1-2", "1-3"), seed=1)
    choice.set_shares({"1-1": 0.75, "1-2": 0.25})

    drawn = Counter(choice.draw() for _ in range(2_000))

    assert set(drawn) == {"1-1", "1-2"}
    assert 1_400 < drawn["1-1"] < 1_600


def test_before_any_share_is_known_all_are_drawn() -> None:
    choice = StageChoice(("1-1", "1-2"), seed=1)

    assert {choice.draw() for _ in range(50)} == {"1-1", "1-2"}


def test_shares_that_say_nothing_change_nothing() -> None:
    choice = StageChoice(("1-1", "1-2"), seed=1)

    choice.set_shares({"1-1": "much", "1-2": -1.0, "9-9": 1.0})

    assert {choice.draw() for _ in range(50)} == {"1-1", "1-2"}


def test_the_same_seed_draws_the_same() -> None:
    first, second = (StageChoice(("1-1", "1-2"), seed=7) for _ in range(2))

    assert [first.draw() for _ in range(30)] == [second.draw() for _ in range(30)]
