from __future__ import annotations

import numpy as np
import torch

from actor.policy import Decision, Policy
from common.blocks import U8
from common.inference import PreparedNetwork
from common.networks import build_network
from common.specs import DataSpec

SPEC = DataSpec(height=16, width=16, stack=2, num_actions=5, n_step=2)
ROWS = 8


def make_policy(seed: int = 3) -> Policy:
    torch.manual_seed(0)
    return Policy(PreparedNetwork(build_network("small", SPEC, 4).eval()), seed)


def observations(rows: int = ROWS) -> U8:
    shape = (rows, SPEC.stack, SPEC.height, SPEC.width)
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


def decide(policy: Policy, epsilon: float, rows: int = ROWS) -> Decision:
    previous = np.arange(rows, dtype=np.int64) % (SPEC.num_actions + 1)
    return policy.decide(observations(rows), previous, np.full(rows, epsilon, dtype=np.float32))


def values_of(policy: Policy, rows: int = ROWS) -> torch.Tensor:
    previous = torch.arange(rows) % (SPEC.num_actions + 1)
    with torch.no_grad():
        _, quantiles = policy.network.infer(torch.from_numpy(observations(rows)), previous)
    return quantiles


def test_epsilon_zero_is_greedy() -> None:
    policy = make_policy()

    decision = decide(policy, 0.0)

    values = values_of(policy)
    assert decision.actions.tolist() == values.mean(dim=2).argmax(dim=1).tolist()
    np.testing.assert_array_equal(decision.chosen_quantiles, decision.greedy_quantiles)


def test_quantiles_are_those_of_the_chosen_and_of_the_best_action() -> None:
    policy = make_policy()

    decision = decide(policy, 1.0)

    values = values_of(policy).numpy()
    best = values.mean(axis=2).argmax(axis=1)
    rows = np.arange(ROWS)
    assert (decision.actions != best).any()
    np.testing.assert_allclose(decision.chosen_quantiles, values[rows, decision.actions], rtol=1e-5)
    np.testing.assert_allclose(decision.greedy_quantiles, values[rows, best], rtol=1e-5)


def test_epsilon_one_is_uniform_and_follows_the_seed() -> None:
    policy, twin, other = make_policy(), make_policy(), make_policy(seed=4)

    actions = np.concatenate([decide(policy, 1.0).actions for _ in range(100)])

    counts = np.bincount(actions, minlength=SPEC.num_actions)
    # 800 draws: 160 each, standard deviation 11.
    assert abs(counts - 160).max() < 55
    twins = np.concatenate([decide(twin, 1.0).actions for _ in range(100)])
    others = np.concatenate([decide(other, 1.0).actions for _ in range(100)])
    np.testing.assert_array_equal(actions, twins)
    assert (actions != others).any()


def test_each_environment_has_its_own_epsilon() -> None:
    policy = make_policy()
    epsilons = np.array([0, 1] * 4, dtype=np.float32)
    previous = np.arange(ROWS, dtype=np.int64) % (SPEC.num_actions + 1)
    greedy = values_of(policy).mean(dim=2).argmax(dim=1).numpy()

    drawn = np.stack([policy.decide(observations(), previous, epsilons).actions for _ in range(50)])

    assert (drawn[:, ::2] == greedy[::2]).all()
    assert (drawn[:, 1::2] != greedy[1::2]).any(axis=0).all()


def test_choosing_for_all_at_once_equals_choosing_one_by_one() -> None:
    policy = make_policy()
    together = decide(policy, 0.0)
    zero = np.zeros(1, dtype=np.float32)

    for row in range(ROWS):
        previous = np.array([row % (SPEC.num_actions + 1)], dtype=np.int64)
        alone = policy.decide(observations()[row : row + 1], previous, zero)
        assert alone.actions[0] == together.actions[row]
        np.testing.assert_allclose(
            alone.greedy_quantiles[0], together.greedy_quantiles[row], rtol=1e-4, atol=1e-5
        )


def test_a_forced_action_is_played_with_its_own_quantiles_and_chance_goes_on_as_before() -> None:
    policy, twin = make_policy(), make_policy()
    forced = [3, None, 0, None, None, None, None, 4]
    previous = np.arange(ROWS, dtype=np.int64) % (SPEC.num_actions + 1)
    half = np.full(ROWS, 0.5, dtype=np.float32)

    led = policy.decide(observations(), previous, half, forced=forced)
    free = twin.decide(observations(), previous, half)

    chosen = [
        own if asked is None else asked for asked, own in zip(forced, free.actions, strict=True)
    ]
    assert led.actions.tolist() == chosen
    rows = np.arange(ROWS)
    expected = values_of(policy).numpy()[rows, led.actions]
    np.testing.assert_allclose(led.chosen_quantiles, expected, rtol=1e-5)
    np.testing.assert_array_equal(led.greedy_quantiles, free.greedy_quantiles)
    assert (decide(policy, 0.5).actions == decide(twin, 0.5).actions).all()
