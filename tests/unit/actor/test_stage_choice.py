from __future__ import annotations

from collections import Counter

import pytest

from actor.stage_choice import StageChoice, first_shares
from common.config import CurriculumSettings, EnvSettings, Settings
from common.game import parse_stage_weights
from learner.curriculum import Curriculum, CurriculumPlan


def test_stages_are_drawn_by_their_shares() -> None:
    choice = StageChoice(("1-1", "1-2", "1-3"), seed=1)
    choice.set_shares({"1-1": 0.75, "1-2": 0.25})

    drawn = Counter(choice.draw() for _ in range(2_000))

    assert set(drawn) == {"1-1", "1-2"}
    assert 1_400 < drawn["1-1"] < 1_600


def test_before_any_share_is_known_all_are_drawn() -> None:
    choice = StageChoice(("1-1", "1-2"), seed=1)

    assert {choice.draw() for _ in range(50)} == {"1-1", "1-2"}


@pytest.mark.parametrize(
    "chosen",
    [
        CurriculumSettings(),
        CurriculumSettings(unlock_clear_rate=0.5),
        CurriculumSettings(curriculum="manual", stage_weights="1-1:1,1-2:0,1-3:3"),
        CurriculumSettings(curriculum="uniform"),
    ],
)
def test_until_shares_arrive_play_is_as_the_curriculum_begins(chosen: CurriculumSettings) -> None:
    settings = Settings(env=EnvSettings(stages="1-1,1-2,1-3"), curriculum=chosen)
    plan = CurriculumPlan(
        stages=settings.env.stage_names,
        mode=chosen.curriculum,
        unlock_clear_rate=chosen.unlock_clear_rate,
        weights=parse_stage_weights(chosen.stage_weights),
    )

    first = first_shares(settings)

    total = sum(first.values())
    assert {stage: share / total for stage, share in first.items()} == Curriculum(plan).shares()


def test_shares_that_say_nothing_change_nothing() -> None:
    choice = StageChoice(("1-1", "1-2"), seed=1)

    choice.set_shares({"1-1": "much", "1-2": -1.0, "9-9": 1.0})

    assert {choice.draw() for _ in range(50)} == {"1-1", "1-2"}


def test_the_same_seed_draws_the_same() -> None:
    first, second = (StageChoice(("1-1", "1-2"), seed=7) for _ in range(2))

    assert [first.draw() for _ in range(30)] == [second.draw() for _ in range(30)]
