from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest
import torch

from common.batch import Batch
from common.errors import ConfigError
from common.state_dicts import plain_state_dict
from learner.late_gradients import LateConvolution
from learner.loss_scale import LossScale
from learner.losses import NextQuantiles, double_q_loss
from learner.update import Learner, UpdateSettings
from tests.learner_factory import random_batch, tiny_learner

INFINITY = float("inf")


def parameters_of(learner: Learner) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in learner.online.parameters()]


def all_equal(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def plain_loss(learner: Learner, batch: Batch) -> torch.Tensor:
    """By the networks themselves, whatever twins the learner keeps of them."""
    states = (batch.next_observations, batch.next_prev_actions)
    with torch.no_grad():
        after = NextQuantiles(online=learner.online(*states), target=learner.target(*states))
    quantiles = learner.online(batch.observations, batch.prev_actions)
    return double_q_loss(quantiles, batch, after).loss


def moments_of(learner: Learner) -> list[torch.Tensor]:
    states = learner.optimizer.state.values()
    return [value.clone() for state in states for value in state.values()]


def test_update_learns_the_returns_of_a_fixed_batch() -> None:
    learner = tiny_learner(UpdateSettings(learning_rate=1e-3))
    batch = random_batch()
    batch.discounts.zero_()

    losses = [learner.update(batch).loss for _ in range(60)]

    assert losses[-1] < 0.25 * losses[0]


def test_result_holds_the_loss_of_every_sample() -> None:
    learner = tiny_learner()
    batch = random_batch()

    result = learner.update(batch)

    assert result.finite
    assert result.priorities.shape == (8,)
    assert result.loss == pytest.approx((result.priorities * batch.weights).mean().item())
    assert result.grad_norm > 0
    assert learner.updates == 1


def test_one_update_equals_plain_adam_with_a_clipped_gradient() -> None:
    settings = UpdateSettings(max_grad_norm=0.5)
    learner, reference = tiny_learner(settings), tiny_learner(settings)
    batch = random_batch()
    plain = torch.optim.Adam(reference.online.parameters(), lr=2.5e-4, eps=1.5e-4, fused=False)

    result = learner.update(batch)

    loss = plain_loss(reference, batch)
    loss.backward()  # type: ignore[no-untyped-call] # torch leaves it untyped
    torch.nn.utils.clip_grad_norm_(reference.online.parameters(), 0.5)
    plain.step()
    assert result.grad_norm > 0.5
    torch.testing.assert_close(parameters_of(learner), parameters_of(reference))


def test_target_is_copied_every_interval_and_not_between() -> None:
    learner = tiny_learner(UpdateSettings(target_sync_interval_updates=3))
    batch = random_batch()
    synced_at = []

    for _ in range(7):
        learner.update(batch)
        pairs = zip(learner.online.parameters(), learner.target.parameters(), strict=True)
        if all(torch.equal(online, target) for online, target in pairs):
            synced_at.append(learner.updates)

    assert synced_at == [3, 6]
    assert learner.target_syncs == 2


def test_target_begins_as_a_copy_and_is_never_trained() -> None:
    learner = tiny_learner()

    assert all_equal(
        list(plain_state_dict(learner.online).values()),
        list(plain_state_dict(learner.target).values()),
    )
    assert not any(parameter.requires_grad for parameter in learner.target.parameters())


@pytest.mark.parametrize("bad", [INFINITY, -INFINITY, float("nan")])
def test_update_that_is_not_finite_changes_nothing_and_is_counted(bad: float) -> None:
    learner = tiny_learner(UpdateSettings(target_sync_interval_updates=1))
    batch = random_batch()
    learner.update(batch)
    before, moments = parameters_of(learner), moments_of(learner)
    poisoned = batch.returns.clone()
    poisoned[3] = bad

    results = [learner.update(replace(batch, returns=poisoned)) for _ in range(2)]

    assert not any(result.finite for result in results)
    assert (learner.updates, learner.skipped_updates) == (1, 2)
    assert learner.consecutive_skipped_updates == 2
    assert all_equal(parameters_of(learner), before)
    assert all_equal(moments_of(learner), moments)


def test_gradient_that_is_not_finite_is_skipped_although_the_loss_is() -> None:
    learner = tiny_learner()
    before = parameters_of(learner)
    # Of the layers that are differentiated; torch leaves register_hook untyped.
    bias: Any = learner._trained_layers.network.value.bias
    handle = bias.register_hook(lambda gradient: gradient * float("nan"))

    result = learner.update(random_batch())

    assert torch.isfinite(torch.tensor(result.loss))
    assert not result.finite
    assert all_equal(parameters_of(learner), before)
    handle.remove()
    assert learner.update(random_batch()).finite
    assert learner.consecutive_skipped_updates == 0


def test_learning_rate_can_follow_a_schedule() -> None:
    learner = tiny_learner()
    learner.update(random_batch())
    before = parameters_of(learner)

    learner.set_learning_rate(0.0)
    learner.update(random_batch())

    assert all_equal(parameters_of(learner), before)


def test_failed_compile_warns_once_and_trains_uncompiled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compile_that_fails_when_called(function: object) -> object:
        def fail(*_: object) -> object:
            raise RuntimeError(f"no compiler for {function}")

        return fail

    monkeypatch.setattr(torch, "compile", compile_that_fails_when_called)
    learner, reference = tiny_learner(), tiny_learner()

    with caplog.at_level(logging.WARNING):
        compiled = learner.compile(random_batch())

    assert not compiled
    assert not learner.model_compiled
    assert [record.message for record in caplog.records] == ["compile failed, training uncompiled"]
    assert learner.update(random_batch()).loss == reference.update(random_batch()).loss


def test_compile_leaves_parameters_and_counters_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    original: Any = torch.compile
    monkeypatch.setattr(torch, "compile", lambda function: original(function, backend="eager"))
    learner, reference = tiny_learner(), tiny_learner()

    assert learner.compile(random_batch())

    assert learner.model_compiled
    assert learner.updates == 0
    assert all_equal(parameters_of(learner), parameters_of(reference))
    assert learner.update(random_batch()).loss == reference.update(random_batch()).loss


def test_gradients_in_another_layout_train_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # As CUDA convolutions may give them; the fused optimizer does not look.
    learner, reference = tiny_learner(), tiny_learner()
    original = LateConvolution.gradients

    def turned(*args: Any, of_weights: bool) -> tuple[torch.Tensor, ...]:
        found = original(*args, of_weights=of_weights)
        if not of_weights:
            return found
        _, kernel, bias = found
        is_turned = kernel.is_contiguous(memory_format=torch.channels_last)
        other = torch.contiguous_format if is_turned else torch.channels_last
        assert kernel.contiguous(memory_format=other).stride() != kernel.stride()
        return found[0], kernel.contiguous(memory_format=other), bias

    for seed in range(3):
        reference.update(random_batch(seed=seed))
    monkeypatch.setattr(LateConvolution, "gradients", turned)
    for seed in range(3):
        learner.update(random_batch(seed=seed))

    assert all_equal(parameters_of(learner), parameters_of(reference))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # the compiler's own imports
def test_compiled_learner_follows_the_plain_one() -> None:
    learner, reference = tiny_learner(), tiny_learner()
    assert learner.compile(random_batch())

    for seed in range(5):
        learner.update(random_batch(seed=seed))
        reference.update(random_batch(seed=seed))

    torch.testing.assert_close(
        parameters_of(learner), parameters_of(reference), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("precision", ["float16", "bfloat16"])
def test_half_precision_on_a_cpu_that_is_not_made_for_it_is_ignored_with_a_warning(
    precision: Any, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learner.update.has_fast_bfloat16", lambda: False)
    with caplog.at_level(logging.WARNING):
        learner = tiny_learner(UpdateSettings(mixed_precision=precision))

    assert learner.autocast_dtype is None
    assert "no fast half precision" in caplog.text


def test_bfloat16_on_a_cpu_learns_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("learner.update.has_fast_bfloat16", lambda: True)
    half = tiny_learner(UpdateSettings(mixed_precision="bfloat16"))
    full = tiny_learner()

    losses = [
        [learner.update(random_batch(seed=seed)).loss for seed in range(10)]
        for learner in (half, full)
    ]

    assert half.autocast_dtype is torch.bfloat16
    assert losses[0] == pytest.approx(losses[1], rel=0.05)
    assert losses[0] != losses[1]
    # What is kept stays in full precision.
    assert {tensor.dtype for tensor in half.online.parameters()} == {torch.float32}


@pytest.mark.parametrize("scale", [LossScale(), LossScale.for_float16()])
@pytest.mark.parametrize("limit", [1e-3, 1e3])
def test_gradients_are_made_smaller_where_they_are_too_large(
    limit: float, scale: LossScale
) -> None:
    learner = tiny_learner(UpdateSettings(max_grad_norm=limit))
    learner.loss_scale = scale

    told = learner.update(random_batch()).grad_norm

    assert 1e-2 < told < 1e2
    # As the optimizer saw them.
    taken = torch.nn.utils.get_total_norm(learner._gradients()).item()
    assert taken == pytest.approx(min(told, limit), rel=1e-5)


def test_loss_scale_of_half_precision_does_not_change_the_update() -> None:
    scaled, plain = tiny_learner(), tiny_learner()
    scaled.loss_scale = LossScale.for_float16()

    results = [learner.update(random_batch()) for learner in (scaled, plain)]

    assert results[0].grad_norm == pytest.approx(results[1].grad_norm, rel=1e-5)
    torch.testing.assert_close(parameters_of(scaled), parameters_of(plain))


def test_overflow_of_the_loss_scale_is_skipped_and_the_scale_halved() -> None:
    learner = tiny_learner()
    learner.loss_scale = LossScale(factor=3e38, is_fixed=False)
    before = parameters_of(learner)

    result = learner.update(random_batch())

    assert not result.finite
    assert all_equal(parameters_of(learner), before)
    assert learner.loss_scale.factor == pytest.approx(1.5e38)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("adam_epsilon", -1.0),
        ("max_grad_norm", INFINITY),
    ],
)
def test_settings_outside_their_range_are_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        UpdateSettings(**{name: value})  # type: ignore[arg-type] # only float fields are named


def test_target_interval_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="target_sync_interval_updates"):
        UpdateSettings(target_sync_interval_updates=0)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("precision", ["off", "bfloat16", "float16"])
def test_update_on_cuda(precision: Any) -> None:
    learner = tiny_learner(UpdateSettings(mixed_precision=precision), device="cuda")
    batch = random_batch(device="cuda")

    results = [learner.update(batch) for _ in range(20)]

    applied = [result for result in results if result.finite]
    assert len(applied) == learner.updates > 0
    assert applied[-1].loss < applied[0].loss
    assert results[0].priorities.device.type == "cuda"


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_infinite_return_on_cuda_changes_nothing() -> None:
    learner = tiny_learner(device="cuda")
    before = parameters_of(learner)
    batch = random_batch(device="cuda")
    batch.returns.fill_(INFINITY)

    assert not learner.update(batch).finite
    assert all_equal(parameters_of(learner), before)
