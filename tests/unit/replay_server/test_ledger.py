from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from common.ids import Incarnation
from replay_server.ledger import Ledger, Verdict

FIRST, SECOND = Incarnation(100), Incarnation(200)


def accept_all(ledger: Ledger, *sequences: int) -> list[Verdict]:
    return [ledger.accept("actor-0", FIRST, sequence) for sequence in sequences]


@given(st.lists(st.integers(0, 60), max_size=200))
def test_every_number_is_new_exactly_once(arrivals: list[int]) -> None:
    verdicts = accept_all(Ledger(), *arrivals)

    new = [n for n, verdict in zip(arrivals, verdicts, strict=True) if verdict is Verdict.NEW]
    assert sorted(new) == sorted(set(arrivals))
    assert set(verdicts) <= {Verdict.NEW, Verdict.DUPLICATE}


def test_passed_over_numbers_are_counted_until_they_arrive() -> None:
    ledger = Ledger()

    accept_all(ledger, 0, 4)
    assert ledger.missing_total == 3
    accept_all(ledger, 2)
    assert ledger.missing_total == 2


def test_judging_alone_remembers_nothing() -> None:
    ledger = Ledger()

    assert ledger.judge("actor-0", FIRST, 0) is Verdict.NEW
    assert ledger.judge("actor-0", FIRST, 0) is Verdict.NEW


def test_the_newest_life_of_an_actor_wins() -> None:
    ledger = Ledger()
    ledger.accept("actor-0", FIRST, 0)

    assert ledger.accept("actor-0", SECOND, 0) is Verdict.NEW
    assert ledger.accept("actor-0", FIRST, 1) is Verdict.STALE_INCARNATION
    assert ledger.accept("actor-0", SECOND, 0) is Verdict.DUPLICATE


def test_actors_do_not_share_numbers() -> None:
    ledger = Ledger()

    assert ledger.accept("actor-0", FIRST, 0) is Verdict.NEW
    assert ledger.accept("actor-1", FIRST, 0) is Verdict.NEW


def test_a_huge_gap_costs_bounded_memory_and_old_numbers_expire() -> None:
    ledger = Ledger(max_missing_per_actor=8)

    verdicts = accept_all(ledger, 0, 10**15, 0, 5, 10**15 - 9, 10**15 - 8, 10**15)

    assert verdicts == [
        Verdict.NEW,
        Verdict.NEW,
        Verdict.EXPIRED,
        Verdict.EXPIRED,
        Verdict.EXPIRED,
        Verdict.NEW,
        Verdict.DUPLICATE,
    ]
    assert len(ledger._records["actor-0"].missing) == 7


def test_many_small_gaps_forget_the_oldest_only() -> None:
    ledger = Ledger(max_missing_per_actor=3)
    accept_all(ledger, 1, 3, 5, 7)

    assert accept_all(ledger, 0, 2, 4, 6) == [Verdict.EXPIRED] + [Verdict.NEW] * 3
    assert accept_all(ledger, 2, 3, 4) == [Verdict.DUPLICATE] * 3


def test_a_stored_number_above_the_forgotten_ones_is_still_a_duplicate() -> None:
    ledger = Ledger(max_missing_per_actor=1)
    accept_all(ledger, 1, 3)

    assert accept_all(ledger, 1) == [Verdict.DUPLICATE]


def test_the_number_of_actors_is_bounded() -> None:
    ledger = Ledger(max_actors=1)
    ledger.accept("actor-0", FIRST, 0)

    assert ledger.accept("actor-1", FIRST, 0) is Verdict.TOO_MANY_ACTORS
    ledger.forget("actor-0")
    assert ledger.accept("actor-1", FIRST, 0) is Verdict.NEW
