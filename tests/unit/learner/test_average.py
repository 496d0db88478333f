from __future__ import annotations

import pytest
import torch

from common.errors import ConfigError
from common.state_dicts import plain_state_dict
from learner.update import UpdateSettings
from tests.learner_factory import random_batch, tiny_learner

DECAY = 0.75


def test_the_average_is_the_exponential_mean_of_the_weights_after_each_update() -> None:
    learner = tiny_learner(UpdateSettings(average_decay=DECAY))
    assert learner.average is not None
    expected: dict[str, torch.Tensor] = {}
    for seed in range(5):
        learner.update(random_batch(seed=seed))
        for name, tensor in plain_state_dict(learner.online).items():
            before = expected.get(name, tensor)
            expected[name] = DECAY * before + (1 - DECAY) * tensor

    averaged = learner.average.tensors()

    assert averaged.keys() == expected.keys()
    for name, tensor in averaged.items():
        torch.testing.assert_close(tensor, expected[name])
    moved = plain_state_dict(learner.online)
    assert any(not torch.allclose(averaged[name], moved[name]) for name in moved)


def test_an_update_that_was_skipped_does_not_count() -> None:
    learner = tiny_learner(UpdateSettings(average_decay=DECAY))
    assert learner.average is not None
    learner.update(random_batch(seed=0))
    before = {name: tensor.clone() for name, tensor in learner.average.tensors().items()}
    broken = random_batch(seed=1)
    broken.returns.fill_(float("nan"))

    assert not learner.update(broken).finite

    assert all(torch.equal(before[name], now) for name, now in learner.average.tensors().items())


def test_training_is_the_same_with_and_without_it() -> None:
    without, averaging = tiny_learner(), tiny_learner(UpdateSettings(average_decay=DECAY))
    for seed in range(4):
        without.update(random_batch(seed=seed))
        averaging.update(random_batch(seed=seed))

    assert without.average is None
    theirs = plain_state_dict(averaging.online)
    for name, tensor in plain_state_dict(without.online).items():
        assert torch.equal(tensor, theirs[name])


@pytest.mark.parametrize("decay", [-0.1, 1.0])
def test_a_decay_that_is_none_is_refused(decay: float) -> None:
    with pytest.raises(ConfigError, match="average_decay"):
        UpdateSettings(average_decay=decay)
