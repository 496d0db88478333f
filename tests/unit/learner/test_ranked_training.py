from __future__ import annotations

import pytest
import torch

from common.errors import RanksLost
from tests.rank_scene import STEERING, RankScene


def test_a_rank_with_a_batch_keeps_it_until_all_have_one() -> None:
    scene = RankScene()
    scene.feed(0)
    early = [scene.turn(), scene.turn()]

    scene.feed(1)
    trained = scene.turn()

    assert early == [[False, False]] * 2
    assert trained == [True, True]
    assert [learner.updates for learner in scene.learners] == [1, 1]


def test_every_rank_sends_the_priorities_of_its_own_part() -> None:
    scene = RankScene()
    for rank in range(2):
        scene.feed(rank, seed=rank)

    scene.turn()

    first, second = (source.told[0] for source in scene.sources)
    assert first.shape == second.shape == (4,)
    assert not torch.equal(first, second)
    assert [source.released for source in scene.sources] == [1, 1]


def test_all_follow_the_rates_of_rank_0() -> None:
    scene = RankScene()
    for rank in range(2):
        scene.feed(rank)

    scene.turn()

    rates = {learner.optimizer.param_groups[0]["lr"] for learner in scene.learners}
    assert rates == {STEERING.learning_rate}
    assert {source.beta for source in scene.sources} == {STEERING.beta}


@pytest.mark.parametrize("who", [0, 1])
def test_all_end_in_the_round_in_which_one_wants_to(who: int) -> None:
    scene = RankScene()
    for rank in range(2):
        scene.feed(rank)

    trained = scene.turn(stops=[who])

    assert trained == [False, False]
    assert all(training.may_end(wants_to=False) for training in scene.trainings)


def test_a_wish_to_end_is_none_before_the_others_heard_of_it() -> None:
    scene = RankScene()

    assert not scene.trainings[0].may_end(wants_to=True)


def test_a_rank_that_was_told_to_end_takes_the_others_along() -> None:
    scene = RankScene()
    scene.feed(0)

    def act(rank: int) -> None:
        if rank == 1:
            scene.trainings[1].leave()
        else:
            scene.trainings[0].turn(lambda: STEERING, stops=False)
        scene.trainings[rank].leave()
        scene.trainings[rank].part()

    scene.all_ranks(act)

    assert all(training.may_end(wants_to=False) for training in scene.trainings)


def test_a_lost_rank_is_an_error_while_training_and_none_at_the_end() -> None:
    scene = RankScene()
    scene.meeting.lose()

    with pytest.raises(RanksLost):
        scene.trainings[0].turn(lambda: STEERING, stops=False)
    scene.trainings[0].leave()
    scene.trainings[0].part()


def test_a_rank_that_keeps_a_batch_goes_on_with_all_else() -> None:
    scene = RankScene(works_meanwhile=True)
    for rank in range(2):
        scene.feed(rank)
    scene.turn()
    scene.feed(0)

    scene.turn()
    scene.heard.clear()
    trained = scene.turn()

    assert trained == [False, False]
    assert sorted(scene.heard) == [0, 1]
    assert [len(source.told) for source in scene.sources] == [1, 1]
    for learner in scene.learners:
        learner.close()
