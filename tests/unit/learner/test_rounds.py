from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from common.errors import RanksLost
from learner.rounds import Word, agree, rescale
from replay_server.sampler import importance_weights

READY = Word(
    has_batch=True, stops=False, updates=7, least_priority=0.5, learning_rate=1e-3, beta=0.4
)


def test_a_word_survives_the_way_to_the_other_ranks() -> None:
    word = replace(READY, updates=2**52 + 1, least_priority=0.1, stops=True)

    assert Word.from_numbers(word.to_numbers()) == word


def test_ranks_train_when_all_have_a_batch() -> None:
    assert agree([READY, READY]).trains
    assert not agree([READY, replace(READY, has_batch=False)]).trains


@pytest.mark.parametrize("who", [0, 1])
def test_whoever_stops_ends_all_and_nobody_trains(who: int) -> None:
    words = [READY, READY]
    words[who] = replace(READY, stops=True)

    agreement = agree(words)

    assert agreement.ends
    assert not agreement.trains


def test_the_rates_are_those_of_rank_0() -> None:
    agreement = agree([READY, replace(READY, learning_rate=9.0, beta=1.0)])

    assert (agreement.learning_rate, agreement.beta) == (1e-3, 0.4)


def test_ranks_at_different_updates_do_not_go_on() -> None:
    with pytest.raises(RanksLost, match="different updates"):
        agree([READY, replace(READY, updates=8)])


@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_weights_of_parts_are_those_of_the_whole_batch(beta: float) -> None:
    priorities = torch.rand(32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    parts = priorities.chunk(4)
    least = agree([replace(READY, least_priority=float(part.min())) for part in parts])

    weights = [
        rescale(importance_weights(part, beta), float(part.min()), least.least_priority, beta)
        for part in parts
    ]

    torch.testing.assert_close(torch.cat(weights), importance_weights(priorities, beta))
