from __future__ import annotations

import pytest

from launch.control_room.now import bottleneck_sentence, is_score, time_shares
from tests.run_folders import score

WAITS = {"updates": 10, "wait_share_actors": 0.3, "wait_share_learner": 0.62}


@pytest.mark.parametrize(
    ("metrics", "sentence"),
    [
        ({}, "Nothing was reported yet."),
        (
            {"updates": 0, "replay_size": 120},
            "Learning has not begun: 120 of 5,000 agent steps are stored.",
        ),
        (
            {**WAITS, "bottleneck": "actors"},
            "The learner waits for the actors 62 % of the time.",
        ),
        (
            {**WAITS, "bottleneck": "learner"},
            "The actors wait for the learner 30 % of the time.",
        ),
        (
            {**WAITS, "bottleneck": "replay"},
            "Everybody waits for the replay server: the actors 30 %, the learner 62 % of the time.",
        ),
        (
            {"updates": 10, "bottleneck": None},
            "Who waits for whom is not known yet: not every part has reported.",
        ),
        (
            {"updates": 1, "wait_share_actors": 0.0, "wait_share_learner": 0.01},
            "Playing and learning keep pace: nobody waits.",
        ),
        ({**WAITS, "bottleneck": "<b>"}, "Who waits for whom is not known yet: "),
    ],
)
def test_the_bottleneck_is_one_sentence(metrics: dict[str, object], sentence: str) -> None:
    assert bottleneck_sentence(metrics, 5_000.0).startswith(sentence)


def test_the_sentence_says_what_the_slowest_part_does() -> None:
    metrics = {**WAITS, "bottleneck": "actors", "emulator_share_actors": 0.5}
    metrics["inference_share_actors"] = 0.2

    assert bottleneck_sentence(metrics, None).endswith(
        "The actors spend 50 % on: emulator, rules and resets."
    )


def test_shares_of_unknown_parts_are_left_out() -> None:
    told = time_shares({"forward_share_learner": 0.4, "copy_share_learner": 0.0})

    assert [(one["phase"], one["share"]) for one in told["learner"]] == [("forward", 0.4)]
    assert set(told) == {"learner"}


def test_a_score_needs_its_interval() -> None:
    assert is_score(score(100))
    assert not is_score({**score(100), "clear_rate_low": None})
    assert not is_score({**score(100), "x_p50": "far"})
