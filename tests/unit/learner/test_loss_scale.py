from __future__ import annotations

import pytest
import torch

from learner.loss_scale import GROWTH_INTERVAL_UPDATES, LossScale


def test_a_fixed_scale_learns_nothing() -> None:
    scale = LossScale()

    scale.learn(finite=False)

    assert scale.factor == 1.0
    assert scale.state() is None


def test_an_overflow_halves_and_begins_to_count_anew() -> None:
    scale = LossScale.for_float16()
    for finite in [True] * 5 + [False]:
        scale.learn(finite=finite)

    assert (scale.factor, scale.good_updates) == (2.0**15, 0)


def test_many_updates_without_an_overflow_double() -> None:
    scale = LossScale.for_float16()
    for _ in range(GROWTH_INTERVAL_UPDATES):
        scale.learn(finite=True)

    assert (scale.factor, scale.good_updates) == (2.0**17, 0)


def test_it_does_as_torchs_own_does() -> None:
    """Beside `GradScaler`, whose states are in older checkpoints."""
    theirs = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=3)
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    theirs.scale(torch.ones(1))
    ours = LossScale.for_float16()
    for finite in (True, True, False, True, False, False, True):
        weight.grad = torch.full((1,), 1.0 if finite else float("inf"))
        theirs.step(optimizer)
        theirs.update()
        ours.learn(finite=finite)

        assert ours.factor == theirs.get_scale()

    restored = LossScale.for_float16()
    restored.restore(theirs.state_dict())
    assert restored == ours


@pytest.mark.parametrize("state", [None, {"scale": 4.0, "_growth_tracker": 1}])
def test_a_run_that_changed_its_precision_begins_anew(state: dict[str, float] | None) -> None:
    fixed = LossScale()
    fixed.restore(state)

    assert fixed == LossScale()


@pytest.mark.parametrize(
    "state",
    [{}, {"scale": 0.0, "_growth_tracker": 0}, {"scale": float("inf"), "_growth_tracker": 0}, 3],
)
def test_damaged_states_are_refused(state: object) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        LossScale.for_float16().restore(state)
