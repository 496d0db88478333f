from __future__ import annotations

from itertools import pairwise

import pytest

from learner.curriculum import (
    EPISODES_BEFORE_JUDGEMENT,
    RECENT_EPISODES,
    Curriculum,
    CurriculumMode,
    CurriculumPlan,
    StageRecord,
    hunger,
)

STAGES = ("1-1", "1-2", "1-3")


def make(mode: CurriculumMode = "progress", **more: object) -> Curriculum:
    return Curriculum(CurriculumPlan(stages=STAGES, mode=mode, **more))  # type: ignore[arg-type]


def play(curriculum: Curriculum, stage: str, clear_rate: float) -> None:
    for index in range(RECENT_EPISODES):
        is_clear = index % 10 < round(10 * clear_rate)
        curriculum.note(stage, cleared=is_clear, ground_pixels=1_000)


def record(clear_rate: float, grounds: tuple[int, int] = (1_000, 1_000)) -> StageRecord:
    one = StageRecord()
    for index in range(RECENT_EPISODES):
        is_late = index >= RECENT_EPISODES // 2
        one.note(cleared=index % 10 < round(10 * clear_rate), ground_pixels=grounds[is_late])
    return one


@pytest.mark.parametrize("mode", ["uniform", "progress", "manual"])
def test_shares_add_up_to_one_and_begin_even(mode: CurriculumMode) -> None:
    shares = make(mode).shares()

    assert list(shares) == list(STAGES)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert len({round(share, 9) for share in shares.values()}) == 1


def test_a_mastered_stage_is_played_less_but_never_forgotten() -> None:
    curriculum = make(floor=0.3)
    play(curriculum, "1-1", 1.0)
    play(curriculum, "1-2", 0.5)

    shares = curriculum.shares()

    assert 0.1 <= shares["1-1"] < shares["1-3"] < shares["1-2"]
    assert sum(shares.values()) == pytest.approx(1.0)


def test_the_edge_of_ability_deserves_most() -> None:
    rates = [hunger(record(rate)) for rate in (0.0, 0.2, 0.5, 0.8, 1.0)]

    assert rates[2] == max(rates)
    assert rates[4] == min(rates)
    assert rates[0] > rates[4]


def test_a_stage_that_is_nearly_mastered_gives_way_little_by_little() -> None:
    """Exploring environments lose, so few stages reach nine of ten clears in training."""
    wants = [hunger(record(rate)) for rate in (0.5, 0.7, 0.8, 0.9, 1.0)]

    assert wants == sorted(wants, reverse=True)
    assert wants[2] < hunger(record(0.0))
    assert max(a / b for a, b in pairwise(wants)) < 3


def test_a_stage_that_is_never_cleared_deserves_more_while_play_moves() -> None:
    assert hunger(record(0.0, (200, 900))) > hunger(record(0.0, (200, 200)))


def test_nothing_is_judged_by_a_few_episodes() -> None:
    young = StageRecord()
    for _ in range(EPISODES_BEFORE_JUDGEMENT - 1):
        young.note(cleared=True, ground_pixels=1)

    assert hunger(young) == hunger(StageRecord())


def test_uniform_ignores_what_happens() -> None:
    curriculum = make("uniform")
    play(curriculum, "1-1", 1.0)

    assert set(curriculum.shares().values()) == {1 / 3}


def test_manual_follows_its_weights() -> None:
    shares = make("manual", weights={"1-1": 2.0, "1-2": 0.0}).shares()

    assert shares == pytest.approx({"1-1": 2 / 3, "1-2": 0.0, "1-3": 1 / 3})


def test_weights_of_nothing_are_even() -> None:
    shares = make("manual", weights=dict.fromkeys(STAGES, 0.0)).shares()

    assert shares == pytest.approx(dict.fromkeys(STAGES, 1 / 3))


def test_stages_unlock_one_after_another_and_stay_so_after_a_resume() -> None:
    curriculum = make(unlock_clear_rate=0.5)
    locked = list(curriculum.shares())
    play(curriculum, "1-1", 0.3)
    still_locked = list(curriculum.shares())
    play(curriculum, "1-1", 0.9)

    resumed = make(unlock_clear_rate=0.5)
    resumed.restore(curriculum.to_state())

    assert locked == still_locked == ["1-1"]
    assert list(curriculum.shares()) == list(resumed.shares()) == ["1-1", "1-2"]


@pytest.mark.parametrize("state", [None, 5, {}, {"unlocked": "2"}, {"unlocked": 99}])
def test_a_foreign_state_does_no_harm(state: object) -> None:
    curriculum = make(unlock_clear_rate=0.5)

    curriculum.restore(state)

    assert 1 <= len(curriculum.shares()) <= 3


def test_episodes_of_other_stages_are_ignored() -> None:
    curriculum = make()

    curriculum.note("8-4", cleared=True, ground_pixels=5)

    assert "8-4" not in curriculum.shares()
